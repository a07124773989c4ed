"""Our operator finds what Kubeflow's made, in every phase of a job: nothing is recreated, no Pod restarts, each job ends.

The objects have exactly the shape that Kubeflow's operator gives them. `test_kubeflow.py` has the real one make them.
"""

import json
from collections.abc import Iterator

import pytest

from e2e import kubeflow_shapes as theirs
from e2e.clusters import deploy_operator
from e2e.handover import ENDS, GO_ON, PATIENCE_SECONDS, PHASES, Handover, make_room
from e2e.jobs import is_true, phase, pi_job, until_true
from e2e.kubectl import DEPLOYMENTS, Kubectl
from e2e.operator_pods import Operator
from mpiop.kube.resources import MPIJOBS, PODS, SECRETS


def bring_to_phase(handover: Handover, name: str) -> None:
    """Make the children of a job as theirs would have, up to the moment when it was stopped in that phase."""
    here, job = handover.here, handover.here.read(MPIJOBS, handover.job(name))
    types = {"suspended": ("Created", "Suspended"), "starting": ("Created",)}.get(name, ("Created", "Running"))
    made = theirs.dependencies(job)
    if name == "starting":
        made += [theirs.worker(job, 0)]  # stopped between two workers
    elif name == "suspended":
        made += [theirs.launcher(job)]
    else:
        made += [theirs.worker(job, 0), theirs.worker(job, 1), theirs.launcher(job)]
    here.apply(*made)
    if "Running" in types:
        labels = f"training.kubeflow.org/job-name={handover.job(name)}"
        here.until(PODS, lambda pods: [phase(pod) for pod in pods] == ["Running"] * 3, labels=labels, timeout_seconds=PATIENCE_SECONDS)
    status = json.dumps({"status": theirs.status(job, *types)})
    here.run("patch", "mpijob", handover.job(name), "--subresource=status", "--type=merge", "--patch", status)


@pytest.fixture(scope="module")
def handover(module_namespace: Kubectl, operator: Operator) -> Iterator[Handover]:
    """No operator, jobs in every phase as theirs left them, then ours, which sees them through."""
    result = Handover(module_namespace, "pi", PHASES)
    with operator.absent():
        make_room(module_namespace, None)
        module_namespace.apply(*result.jobs().values())
        for name in PHASES:
            bring_to_phase(result, name)
        result.end_unseen()
    result.see_through()
    yield result
    make_room(module_namespace, None)


@pytest.mark.parametrize("name", GO_ON)
def test_what_theirs_made_for_a_job_that_goes_on_is_kept(name: str, handover: Handover) -> None:
    before = handover.children_of(handover.before, name)
    assert len(before) >= 4
    assert before <= handover.children_of(handover.after, name)


def test_what_was_missing_of_a_starting_job_is_made(handover: Handover) -> None:
    made = handover.children_of(handover.after, "starting") - handover.children_of(handover.before, "starting")
    assert {name for name, _ in made if "-launcher-" not in name} == {"pi-starting-worker-1", "pi-starting-launcher"}


@pytest.mark.parametrize("name", [name for name in PHASES if name != "starting"])
def test_nothing_is_made_anew(name: str, handover: Handover) -> None:
    assert handover.children_of(handover.after, name) <= handover.children_of(handover.before, name)


def test_no_pod_that_was_taken_over_is_restarted(handover: Handover) -> None:
    handover.assert_no_restart()


@pytest.mark.parametrize("name", PHASES)
def test_each_job_comes_to_its_right_end(name: str, handover: Handover) -> None:
    handover.assert_right_end(name)


def test_start_and_conditions_stay_as_theirs_reported_them(handover: Handover) -> None:
    handover.assert_times_stay()


def test_the_time_of_the_end_is_that_of_the_launchers_job(handover: Handover) -> None:
    [launcher] = [each for each in handover.before.values() if each["metadata"]["name"] == "pi-finished-launcher"]
    assert handover.ended["finished"]["status"]["completionTime"] == launcher["status"]["completionTime"]


def test_the_key_that_theirs_made_stays(handover: Handover) -> None:
    secret = handover.here.read(SECRETS, "pi-running-ssh")
    assert secret["data"] == handover.before[secret["metadata"]["uid"]]["data"]


def test_what_theirs_had_reported_is_not_reported_again(handover: Handover) -> None:
    assert handover.events("MPIJobCreated") == {}
    assert set(handover.events("MPIJobRunning")) <= {"starting", "suspended"}
    ended = [name for name in PHASES if name not in ENDS]
    assert handover.events("MPIJobSucceeded") == dict.fromkeys(ended, 1)


def test_a_new_job_of_an_old_name_runs(handover: Handover) -> None:
    here = handover.here
    here.run("delete", "mpijob", "pi-finished", "--cascade=foreground")
    here.apply(pi_job("pi-finished"))
    until_true(here, "pi-finished", "Succeeded")


# The old manifest.


@pytest.fixture
def without_ours(operator: Operator, cluster: Kubectl) -> Iterator[str]:
    """No Deployment of the operator during the test and its namespace as Kubeflow's manifest has it, then ours again; the image of ours."""
    image: str = operator.kubectl.read(DEPLOYMENTS, "mpi-operator")["spec"]["template"]["spec"]["containers"][0]["image"]
    operator.kubectl.run("delete", "deployment", "mpi-operator")
    operator.kubectl.until(PODS, lambda pods: not pods, labels="app=mpi-operator")
    operator.kubectl.run("label", "namespace", "mpi-operator", "pod-security.kubernetes.io/enforce-")
    try:
        yield image
    finally:
        operator.kubectl.run("delete", "deployment", "mpi-operator", "--ignore-not-found")
        deploy_operator(cluster)
        operator.wait_until_ready()


def test_the_old_deployment_with_its_old_flags_starts_ours(namespace: Kubectl, without_ours: str, operator: Operator) -> None:
    old_flags = ("-stderrthreshold=0", "-v=4", "--threadiness", "2", "--monitoring-port=8443", "--kube-api-qps=50")
    operator.kubectl.apply(theirs.deployment(without_ours, *old_flags))
    operator.wait_until_ready()
    [pod] = operator.pods()
    assert "mpi_operator_is_leader 1.0" in operator.answer(pod["metadata"]["name"], "/metrics", 8443)
    namespace.apply(pi_job("pi"))
    assert is_true(until_true(namespace, "pi", "Succeeded"), "Created")
