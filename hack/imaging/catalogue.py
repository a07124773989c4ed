"""The images of this project: one row each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from imaging.errors import ImagesError

ROOT = Path(__file__).resolve().parents[2]

REGISTRY = "mpiop.invalid"
"""Of all images, until one is chosen. No name server answers for it (RFC 6761), so nobody can serve an image of this name."""
DEFAULT_OPERATOR_REPOSITORY = f"{REGISTRY}/mpi-operator"
"""What manifests/ names too."""
AGENT_SUFFIX = "-agent"
"""mpiop-agent's image is the operator's name with this behind it, and has the same tag."""


@dataclass(frozen=True, slots=True)
class Image:
    """What one image is built from.

    Attributes:
        name: What `--only` and the file of `--save` call it.
        repository: Its name without the tag; the operator's can be set on the command line.
        context: Folder with the Dockerfile and a .dockerignore, from the project's root.
        tag: "" means the release version.
        target: Stage of the Dockerfile; "" means the last.
        is_go: Whether the folder is a Go module, whose program is built first (`imaging.programs`).
        is_slow: Whether it is built only if `--only` names it.
    """

    name: str
    repository: str
    context: str
    tag: str = ""
    target: str = ""
    is_go: bool = False
    is_slow: bool = False

    def reference(self, version: str) -> str:
        """Return the full name, registry and tag included, so that docker, podman and Kubernetes mean the same image by it."""
        return f"{with_registry(self.repository)}:{self.tag or version}"


CATALOGUE = (
    Image(name="operator", repository=DEFAULT_OPERATOR_REPOSITORY, context="."),
    Image(name="agent", repository=f"{DEFAULT_OPERATOR_REPOSITORY}{AGENT_SUFFIX}", context="agent", is_go=True),
    Image(name="pi", repository=f"{REGISTRY}/mpi-pi", context="examples/v2beta1/pi", tag="openmpi", target="openmpi"),
    Image(name="mpi4py", repository=f"{REGISTRY}/mpi4py", context="examples/v2beta1/pi", tag="openmpi", target="mpi4py"),
    Image(name="devel", repository=f"{REGISTRY}/mpi-devel", context="examples/v2beta1/pi", tag="openmpi", target="devel"),
    Image(name="horovod", repository=f"{REGISTRY}/horovod", context="examples/v2beta1/pi", tag="gloo", target="horovod", is_slow=True),
    *(
        Image(name=f"pi-{library}", repository=f"{REGISTRY}/mpi-pi", context="examples/v2beta1/pi", tag=library, target=library)
        for library in ("openmpi5", "mpich", "mpich5", "mpich-debian", "intel")
    ),
    *(
        Image(
            name=f"plain-{library}",
            repository=f"{REGISTRY}/mpi-pi",
            context="examples/v2beta1/pi",
            tag=f"plain-{library}",
            target=f"plain-{library}",
        )
        for library in ("openmpi", "openmpi5", "mpich", "mpich5", "intel")
    ),
    *(
        Image(name=name, repository=f"{REGISTRY}/{name}", context="examples/applications", tag="openmpi", target=name, is_slow=True)
        for name in ("hpcc", "lammps", "pytorch", "dask")
    ),
)


def with_registry(repository: str) -> str:
    """Return `repository` with the registry that a name without one means to docker and Kubernetes."""
    first, slash, _ = repository.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return repository
    return f"docker.io/{repository}" if slash else f"docker.io/library/{repository}"


def in_registry(reference: str, registry: str) -> str:
    """Return the name of an image in another registry, which may have a path: `registry.example.com/team`."""
    return f"{registry.rstrip('/')}/{reference.partition('/')[2].removeprefix('library/')}"


def select(only: Sequence[str]) -> tuple[Image, ...]:
    """Return the images named in `only`; if it is empty, all but the slow ones.

    Raises:
        ImagesError: A name is not in the catalogue.
    """
    known = [image.name for image in CATALOGUE]
    if unknown := sorted(set(only) - set(known)):
        raise ImagesError(f"--only {', '.join(unknown)}: no such image; there are {', '.join(known)}")
    return tuple(image for image in CATALOGUE if (image.name in only if only else not image.is_slow))


def release_version(root: Path = ROOT) -> str:
    """Return the version in src/mpiop/__init__.py with the `v` of release tags; the file is read, not imported."""
    source = root / "src/mpiop/__init__.py"
    match = re.search(r'^__version__ = "([^"]+)"$', source.read_text("utf-8"), re.MULTILINE)
    if match is None:
        raise ImagesError(f'{source} has no line __version__ = "…"; give the version with --release-version')
    return f"v{match[1]}"
