"""The launcher runs from the start, and `mpirun` waits in it until each worker can be reached."""

from e2e.jobs import (
    LAUNCHER,
    annotated,
    condition,
    edit,
    held,
    is_true,
    let_run,
    let_workers_come,
    phase,
    pi_job,
    until_launcher_has_waited,
    until_true,
    without_workers_yet,
)
from e2e.kubectl import Kubectl
from e2e.operator_pods import Operator
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES

LATE_SECONDS = 20


def assert_first_try(here: Kubectl, launcher: str) -> None:
    """Assert that the launcher of the job `pi` was not tried again, by Job or kubelet, and computed on the workers."""
    assert "failed" not in here.read(JOBS, "pi-launcher")["status"]
    [pod] = here.read_all(PODS, LAUNCHER)
    assert pod["metadata"]["name"] == launcher
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]
    assert "runs on pi-worker-0" in here.run("logs", launcher)


def test_a_launcher_waits_for_late_workers_and_says_for_which(namespace: Kubectl) -> None:
    namespace.apply(without_workers_yet(pi_job()))
    launcher = until_launcher_has_waited(namespace, "pi", LATE_SECONDS)
    for resource, name in ((SERVICES, "pi"), (CONFIG_MAPS, "pi-config"), (SECRETS, "pi-ssh")):
        assert namespace.read(resource, name), "all is there before any worker is"
    assert condition(namespace.read(MPIJOBS, "pi"), "Running") == {}
    let_workers_come(namespace, "pi")
    until_true(namespace, "pi", "Succeeded")
    assert_first_try(namespace, launcher)


def test_without_an_operator_workers_are_found_by_their_names(namespace: Kubectl, operator: Operator) -> None:
    namespace.apply(without_workers_yet(pi_job()))
    launcher = until_launcher_has_waited(namespace, "pi", 10)
    with operator.absent():
        let_workers_come(namespace, "pi")
        namespace.until_one(JOBS, "pi-launcher", lambda job: is_true(job, "Complete"), timeout_seconds=180)
        assert_first_try(namespace, launcher)
    until_true(namespace, "pi", "Succeeded")


def test_a_worker_lost_before_it_is_called_is_waited_for(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job()))
    until_true(namespace, "pi", "Running")
    [pod] = namespace.read_all(PODS, LAUNCHER)
    launcher = pod["metadata"]["name"]
    edit(namespace, mpiReplicaSpecs={"Worker": {"template": {"spec": {"schedulingGates": [{"name": "mpiop.test/not-yet"}]}}}})
    lost = namespace.read(PODS, "pi-worker-0")["metadata"]["uid"]
    namespace.run("delete", "pod", "pi-worker-0")
    namespace.until_one(PODS, "pi-worker-0", lambda found: found["metadata"]["uid"] != lost)
    let_run(namespace, launcher)
    assert until_launcher_has_waited(namespace, "pi", 10) == launcher
    namespace.run("patch", "pod", "pi-worker-0", "--type=merge", '--patch={"spec": {"schedulingGates": []}}')
    until_true(namespace, "pi", "Succeeded")
    assert_first_try(namespace, launcher)


def test_who_opts_out_has_the_images_own_ssh(namespace: Kubectl) -> None:
    job = annotated(held(pi_job()), ssh_agent="false")
    namespace.apply(job)
    until_true(namespace, "pi", "Running")
    [pod] = namespace.read_all(PODS, LAUNCHER)
    assert "OMPI_MCA_plm_rsh_agent" not in {each["name"] for each in pod["spec"]["containers"][0]["env"]}
    let_run(namespace, pod["metadata"]["name"])
    ended = until_true(namespace, "pi", "Succeeded", timeout_seconds=180)
    assert not is_true(ended, "WorkersUnused")
    assert phase(namespace.read(PODS, pod["metadata"]["name"])) == "Succeeded"
