"""One cluster for all tests of this folder, the operator on it by its manifests, and a namespace for each test.

The cluster is an embedded one of its own, named e2e or as MPIOP_E2E_CLUSTER specifies, taken down at the end unless MPIOP_E2E_KEEP is set.
MPIOP_CLUSTER=current uses the current kubeconfig context instead, whose nodes must be able to pull the images that the manifests name.
"""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from e2e.audit import OPERATOR
from e2e.clusters import IS_CURRENT, ROOT, deploy_operator, embedded_cluster, load_images, output_shown
from e2e.diagnosis import write_diagnosis
from e2e.kubectl import Kubectl
from e2e.operator_pods import Operator
from e2e.rights import owning
from e2e.waiting import wait_until

NAME = os.environ.get("MPIOP_E2E_CLUSTER") or "e2e"
OPTIONS = ("--audit", "--admission-plugins=OwnerReferencesPermissionEnforcement")
LAST = "test_rights"
"""It judges what the operator did in all other tests."""


def pytest_configure() -> None:
    """Let SIGTERM end the tests as Ctrl-C does: fixtures clean up. A shell's background job ignores SIGINT, and so would its children."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests last that are about all others."""
    items.sort(key=lambda item: item.path.stem == LAST)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl on a cluster with the images on its node."""
    if IS_CURRENT:
        yield Kubectl(dict(os.environ))
        return
    with contextlib.ExitStack() as stack:
        with output_shown(request):
            kubectl = stack.enter_context(embedded_cluster(NAME, *OPTIONS))
            load_images(NAME)
        yield kubectl


@pytest.fixture(scope="session")
def operator(cluster: Kubectl) -> Operator:
    """The operator, deployed by the manifest that users apply, both replicas ready."""
    deploy_operator(cluster)
    operator = Operator(cluster.within("mpi-operator"))
    operator.wait_until_ready()
    if not IS_CURRENT:
        # OwnerReferencesPermissionEnforcement learns of the CRD up to 30 s later.
        wait_until("the operator may own objects", lambda: owning(cluster.within("default"), OPERATOR).returncode == 0)
    return operator


@contextlib.contextmanager
def new_namespace(cluster: Kubectl, name: str, session: pytest.Session) -> Iterator[Kubectl]:
    """Yield kubectl in a fresh namespace; what is in it goes to build/e2e/ when a test fails before it is deleted."""
    here = cluster.within(f"e2e-{name}")
    failed_before = session.testsfailed
    cluster.run("delete", "namespace", here.namespace, "--ignore-not-found")
    cluster.run("create", "namespace", here.namespace)
    yield here
    if session.testsfailed > failed_before:
        folder = ROOT / "build" / "e2e" / name
        write_diagnosis(folder, here)
        sys.stderr.write(f"\nobjects, events and logs: {folder.relative_to(ROOT)}\n")
    cluster.run("delete", "namespace", here.namespace, "--wait=false")


def namespace_of_test(cluster: Kubectl, request: pytest.FixtureRequest) -> contextlib.AbstractContextManager[Kubectl]:
    """Return a fresh namespace that is called as the test is."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))[:50].strip("-")
    return new_namespace(cluster, name, request.session)


@pytest.fixture
def namespace(cluster: Kubectl, operator: Operator, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl in a namespace of the test's own, on a cluster where the operator runs."""
    assert operator.pods()
    with namespace_of_test(cluster, request) as here:
        yield here


@pytest.fixture(scope="module")
def module_namespace(cluster: Kubectl, operator: Operator, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """The same for all tests of a module."""
    assert operator.pods()
    with new_namespace(cluster, _module_name(request), request.session) as here:
        yield here


@pytest.fixture(scope="module")
def empty(request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl on a cluster of the module's own where nothing of ours is installed; an API server is enough."""
    if IS_CURRENT:
        pytest.skip("the user's own cluster is not installed upon twice")
    with embedded_cluster(f"{NAME}-{_module_name(request)}", "--control-plane-only") as kubectl:
        yield kubectl


@pytest.fixture(scope="module")
def images(cluster: Kubectl, request: pytest.FixtureRequest) -> None:
    """The `IMAGES` of the test's module, on the node; the user's own cluster has to have them."""
    assert cluster
    load_images(NAME, *request.module.IMAGES)


def _module_name(request: pytest.FixtureRequest) -> str:
    name: str = request.module.__name__.rpartition(".")[2]
    return name.removeprefix("test_").replace("_", "-")
