# The operator's image. It takes arguments only: docker run IMAGE --version
#
# Builds on any Debian with Python 3.11 or newer, or with none (then Debian's own is installed):
#   docker build -t mpiop.invalid/mpi-operator:dev .
#   docker build --build-arg BASE_IMAGE=docker.io/library/python:3.13-slim-bookworm -t mpiop.invalid/mpi-operator:dev .
# For a release, name such a base by its digest, as below.
# hack/images builds it with docker, podman or buildah, with or without a registry (docs/images.md).
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716
# Of the stage `without-shell` alone.
ARG RUNTIME_IMAGE=scratch

# Python, without what installs or compiles: an official python image brings pip along, Debian's package does not.
FROM ${BASE_IMAGE} AS python
RUN command -v python3 >/dev/null || { \
        apt-get update -qq && \
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3 && \
        rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig /var/log/apt /var/log/*.log && \
        # The byte code that the packages' scripts write differs from build to build.
        find /usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} + && \
        PYTHONHASHSEED=0 python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3*; \
    }; \
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; BASE_IMAGE has " + sys.version)'

# The virtual environment. Its interpreter is a link to the python3 of the base, so both stages must come from the same one.
FROM python AS builder
RUN python3 -c 'import ensurepip, venv' 2>/dev/null || { \
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-venv; \
    }
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/mpiop
# The same input makes the same files: byte code without chance, a wheel without today's date.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONHASHSEED=0 SOURCE_DATE_EPOCH=315532800
# A lock is installed, not resolved: --no-deps.
# pip.conf and ca.crt are optional secrets: how this network reaches the package index. They exist for one RUN and reach no layer.
COPY requirements/build.txt requirements/runtime.txt /src/requirements/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt \
    /opt/build/bin/pip install --quiet --no-deps --require-hashes --only-binary :all: -r /src/requirements/build.txt && \
    /opt/build/bin/pip --python /opt/mpiop/bin/python install --quiet --no-compile --no-deps --require-hashes --only-binary :all: \
        -r /src/requirements/runtime.txt && \
    rm -f /opt/mpiop/bin/[Aa]ctivate* && \
    /opt/mpiop/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/mpiop/lib

# mpiop itself, in a stage and a layer of its own: a changed source leaves the dependencies' layer as it is.
FROM builder AS package
COPY pyproject.toml setup.cfg /src/
COPY src /src/src
RUN cd /src && touch README.md && \
    /opt/build/bin/pip wheel --quiet --no-build-isolation --no-index --no-deps --wheel-dir /wheel . && \
    /opt/build/bin/pip --python /opt/mpiop/bin/python install --quiet --no-compile --no-index --no-deps --no-warn-script-location \
        --root /result /wheel/*.whl && \
    /opt/mpiop/bin/python -m compileall -q --invalidation-mode unchecked-hash -s /result /result/opt/mpiop/lib

# For `--target without-shell`: the same on an image that has no shell, and the base's Python in the same place (docs/images.md).
FROM ${RUNTIME_IMAGE} AS without-shell
COPY --from=builder /opt/mpiop /opt/mpiop
COPY --from=package /result /
ENV PATH=/opt/mpiop/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["mpiop"]

FROM python
# Only an official python image has something to remove here.
RUN rm -rf /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/bin/2to3* /usr/local/lib/python3*/ensurepip \
        /usr/local/lib/python3*/site-packages/pip /usr/local/lib/python3*/site-packages/setuptools /usr/local/lib/python3*/site-packages/wheel \
        /usr/local/lib/python3*/site-packages/pip-* /usr/local/lib/python3*/site-packages/setuptools-* /usr/local/lib/python3*/site-packages/wheel-*
COPY --from=builder /opt/mpiop /opt/mpiop
COPY --from=package /result /
# Byte code is there already, and the root file system may be read-only.
ENV PATH=/opt/mpiop/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
LABEL org.opencontainers.image.title="mpiop" \
      org.opencontainers.image.description="An MPI Operator for Kubernetes: MPIJob kubeflow.org/v2beta1" \
      org.opencontainers.image.licenses="Apache-2.0"
ENTRYPOINT ["mpiop"]
