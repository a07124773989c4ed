"""From Kubeflow's MPI Operator, the real 0.8.2, to ours and back, by the commands of docs/switch.md, with jobs in every phase.

Its release is built from its Go module and deployed by its own manifest, on a cluster of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demonstration.operator_images import built_archives
from e2e.clusters import ROOT, embedded_cluster, output_shown, project
from e2e.conftest import NAME, new_namespace
from e2e.handover import ENDS, GO_ON, KEPT, PHASES, Handover, begin
from e2e.kubectl import DEPLOYMENTS, Kubectl
from e2e.neighbours import load_program, module_folder
from e2e.operator_pods import Operator
from e2e.shell import Shell, open_shell

CLUSTER = f"{NAME}-kubeflow"
PART, MODULE, RELEASE = "kubeflow-mpi-operator", "github.com/kubeflow/mpi-operator", "0.8.2"


@dataclass(frozen=True)
class Ground:
    """The cluster, the namespace of the jobs, and the shell of who switches: our checkout, with their manifest beside it."""

    cluster: Kubectl
    here: Kubectl
    shell: Shell

    @property
    def operator(self) -> Kubectl:
        """Where both operators live."""
        return self.cluster.within("mpi-operator")

    def start_theirs(self) -> None:
        """Deploy Kubeflow's operator as the guide says."""
        self.shell.follow("docs/switch.md", "Back to Kubeflow's operator", timeout_seconds=200)

    def start_ours(self) -> None:
        """Deploy ours as the guide says."""
        self.shell.follow("docs/switch.md", "To mpiop", timeout_seconds=200)
        Operator(self.operator).wait_until_ready()


def load_theirs(cluster: str, folder: Path) -> Path:
    """Load the image of Kubeflow's operator into a cluster, and return its manifest."""
    load_program(cluster, PART, "/opt/mpi-operator", f"docker.io/mpioperator/mpi-operator:{RELEASE}", folder / "theirs.tar")
    return module_folder(PART, MODULE) / "deploy" / "v2beta1" / "mpi-operator.yaml"


@pytest.fixture(scope="module")
def ground(
    is_current_cluster: bool,  # noqa: FBT001 - a fixture
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Ground]:
    """A cluster with both operators' images on its node, and neither of them running."""
    if is_current_cluster:
        pytest.skip("the user's own cluster is not switched to another operator and back")
    folder = tmp_path_factory.mktemp("switch")
    with output_shown(request), embedded_cluster(CLUSTER) as cluster:
        project("hack/cluster", "load-image", "--name", CLUSTER, *built_archives())
        manifest = load_theirs(CLUSTER, folder)
        checkout = folder / "checkout"
        checkout.mkdir()
        (checkout / "deploy").symlink_to(ROOT / "deploy")
        (checkout / f"mpi-operator-{RELEASE}.yaml").symlink_to(manifest)
        with new_namespace(cluster, "kubeflow", request.session) as here:
            yield Ground(cluster, here, open_shell(here, checkout, folder / "kubeconfig"))


@pytest.fixture(scope="module")
def there(ground: Ground) -> Handover:
    """From Kubeflow's operator to ours."""
    ground.start_theirs()
    handover = begin(ground.cluster, ground.here, "there", list(PHASES))
    ground.start_ours()
    handover.see_through()
    return handover


@pytest.fixture(scope="module")
def back(ground: Ground, there: Handover) -> Handover:
    """From ours to Kubeflow's, which would run a job again whose launcher's Job has vanished."""
    assert there.ended
    handover = begin(ground.cluster, ground.here, "back", KEPT)
    ground.start_theirs()
    handover.see_through()
    return handover


@pytest.mark.parametrize("name", PHASES)
def test_ours_takes_over_every_object_of_theirs_and_makes_none_anew(name: str, there: Handover) -> None:
    before, after = there.children_of(there.before, name), there.children_of(there.after, name)
    assert after <= before
    assert name not in GO_ON or after == before, "workers of a job that has ended are cleaned up by its policy"


def test_no_pod_that_ours_took_over_was_restarted(there: Handover) -> None:
    there.assert_no_restart()


@pytest.mark.parametrize("name", PHASES)
def test_ours_brings_a_job_of_theirs_to_its_right_end(name: str, there: Handover) -> None:
    there.assert_right_end(name)


def test_ours_keeps_the_times_that_theirs_stored(there: Handover) -> None:
    there.assert_times_stay()


def test_ours_reports_each_end_once(there: Handover) -> None:
    assert there.events("MPIJobSucceeded") == dict.fromkeys([name for name in PHASES if name not in ENDS], 1)


@pytest.mark.parametrize("name", GO_ON)
def test_theirs_takes_over_every_object_of_ours(name: str, back: Handover) -> None:
    assert back.children_of(back.before, name) <= back.children_of(back.after, name)


def test_no_pod_that_theirs_took_over_was_restarted(back: Handover) -> None:
    back.assert_no_restart()


@pytest.mark.parametrize("name", KEPT)
def test_theirs_brings_a_job_of_ours_to_its_right_end(name: str, back: Handover) -> None:
    back.assert_right_end(name)


def test_theirs_is_ready_after_the_guides_commands(ground: Ground, back: Handover) -> None:
    assert back.ended
    assert ground.operator.read(DEPLOYMENTS, "mpi-operator")["status"]["readyReplicas"] == 1
