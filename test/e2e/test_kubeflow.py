"""From Kubeflow's MPI Operator, the real 0.8.2, to ours and back, by the commands of docs/switch.md, with jobs in every phase.

Its release is built from its Go module and deployed by its own manifest, on a cluster of its own.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.clusters import IS_CURRENT, ROOT, embedded_cluster, load_images, output_shown
from e2e.conftest import NAME, new_namespace
from e2e.handover import ENDS, GO_ON, KEPT, PHASES, Handover, begin
from e2e.jobs import condition, is_true, launcher_container, pi_job, state, until_true
from e2e.kubectl import DEPLOYMENTS, Kubectl, Obj
from e2e.neighbours import load_program, module_folder
from e2e.operator_pods import Operator
from e2e.plugin import new_tool
from e2e.shell import Shell
from mpiop.kube.resources import MPIJOBS

CLUSTER = f"{NAME}-kubeflow"
PART, MODULE, RELEASE = "kubeflow-mpi-operator", "github.com/kubeflow/mpi-operator", "0.8.2"
OLD_STATUS = {
    "conditions": [{"type": "Created", "status": "True"}],
    "lastReconcileTime": "2022-02-01T00:00:00Z",
    "replicaStatuses": {"Worker": {"labelSelector": {"matchLabels": {"a": "b"}}, "active": 2}, "Evaluator": {"active": 1}},
    "startTime": "2022-02-01T00:00:00Z",
}
"""Conditions without times, and what no operator writes any more; a role that ours does not know."""


@dataclass(frozen=True)
class Switch:
    """The cluster, the namespace of the jobs, and the shell of who switches: our checkout, with their manifest next to it."""

    cluster: Kubectl
    here: Kubectl
    shell: Shell

    @property
    def operator(self) -> Kubectl:
        return self.cluster.within("mpi-operator")

    def start_theirs(self) -> None:
        """Deploy Kubeflow's operator as the guide shows."""
        self.shell.follow("docs/switch.md", "Back to Kubeflow's operator", timeout_seconds=200)

    def start_ours(self, replace: Mapping[str, str] | None = None) -> str:
        """Deploy ours as the guide shows, and return what its commands print."""
        printed = self.shell.follow("docs/switch.md", "To mpiop", replace, timeout_seconds=200)
        Operator(self.operator).wait_until_ready()
        return printed


def load_theirs(cluster: str, folder: Path) -> Path:
    """Load the image of Kubeflow's operator into a cluster, and return its manifest."""
    load_program(cluster, PART, "/opt/mpi-operator", f"docker.io/mpioperator/mpi-operator:{RELEASE}", folder / "theirs.tar")
    return module_folder(PART, MODULE) / "deploy" / "v2beta1" / "mpi-operator.yaml"


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Switch]:
    """A cluster with both operators' images on its node, and neither of them running."""
    if IS_CURRENT:
        pytest.skip("the user's own cluster is not switched to another operator and back")
    folder = tmp_path_factory.mktemp("switch")
    with output_shown(request), embedded_cluster(CLUSTER) as cluster:
        load_images(CLUSTER)
        manifest = load_theirs(CLUSTER, folder)
        checkout = folder / "checkout"
        checkout.mkdir()
        (checkout / "deploy").symlink_to(ROOT / "deploy")
        (checkout / f"mpi-operator-{RELEASE}.yaml").symlink_to(manifest)
        with new_namespace(cluster, "kubeflow", request.session) as here:
            yield Switch(cluster, here, Shell(new_tool(here, folder).environment, checkout))


@pytest.fixture(scope="module")
def there(switch: Switch) -> Handover:
    """From Kubeflow's operator to ours; doctor names theirs, and nothing that prevents the switch."""
    switch.start_theirs()
    found = "Deployment mpi-operator in namespace mpi-operator is Kubeflow's MPI operator, which mpiop's manifest replaces"
    assert f"note     {found}" in switch.shell.run("kubectl mpi doctor --migrate").splitlines()
    handover = begin(switch.cluster, switch.here, "there", list(PHASES))
    switch.start_ours()
    handover.see_through()
    return handover


@pytest.fixture(scope="module")
def back(switch: Switch, there: Handover) -> Handover:
    """From ours to Kubeflow's, which would run a job again whose launcher's Job has vanished."""
    assert there.ended
    handover = begin(switch.cluster, switch.here, "back", KEPT)
    switch.start_theirs()
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


def test_theirs_is_ready_after_the_guides_commands(switch: Switch, back: Handover) -> None:
    assert back.ended
    assert switch.operator.read(DEPLOYMENTS, "mpi-operator")["status"]["readyReplicas"] == 1


def bare(name: str) -> Obj:
    """Return a job that leaves out what may be left out, and has a role that ours does not know."""
    job = pi_job(name)
    launcher_container(job)["args"] = ["-n", "1", "/home/mpiuser/pi"]
    del job["spec"]["runPolicy"], job["spec"]["slotsPerWorker"], job["spec"]["mpiImplementation"]
    roles = job["spec"]["mpiReplicaSpecs"]
    del roles["Launcher"]["replicas"], roles["Worker"]["replicas"]
    roles["Evaluator"] = {"replicas": 1}
    return job


def refused_by_ours() -> list[Obj]:
    """Return jobs that only their CRD lets in: it asks for no role and no template, and takes any number and any word."""
    no_launcher, numbers, words = (pi_job(name) for name in ("no-launcher", "numbers", "words"))
    no_launcher["spec"] = {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}
    numbers["spec"]["mpiReplicaSpecs"]["Launcher"]["replicas"] = 2
    numbers["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 0
    words["spec"]["runPolicy"]["cleanPodPolicy"] = "Undefined"
    words["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    return [no_launcher, numbers, words]


def test_F54_jobs_of_every_shape_that_their_CRD_let_in_run_or_report_what_is_wrong(switch: Switch, back: Handover) -> None:
    assert back.ended
    Operator(switch.operator).stop()
    here, broken = switch.here, [job["metadata"]["name"] for job in refused_by_ours()]
    here.apply(bare("bare"), *refused_by_ours())
    for name in ("bare", *broken):
        here.run("patch", "mpijob", name, "--subresource=status", "--type=merge", "--patch", json.dumps({"status": OLD_STATUS}))
    printed = switch.start_ours({"doctor --migrate": "doctor --migrate || true"})
    for name in broken:
        assert f"problem  MPIJob {here.namespace}/{name} is not valid in v2beta1: " in printed
        job = here.until_one(MPIJOBS, name, lambda found: is_true(found, "Stalled"))
        assert condition(job, "Stalled")["reason"] == state(job) == "ValidationError"
    job = until_true(here, "bare", "Succeeded")
    assert job["status"]["startTime"] == OLD_STATUS["startTime"]
    here.run("delete", "mpijob", "bare", *broken)
