"""Suspending and resuming on a real cluster: what Kueue does, and what users do with an edit in between."""

from e2e.jobs import LAUNCHER, WORKER, condition, edit, held, is_true, launcher_pod, let_run, pi_job, until_true, with_script
from e2e.kubectl import Kubectl, Obj
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES

# On a busy machine a kubelet takes its time, and a resume begins with the end of what was there.
START_SECONDS = 180
LINUX = {"kubernetes.io/os": "linux"}
TOLERATION = {"key": "example.com/spare", "operator": "Exists"}


def suspended(here: Kubectl) -> Obj:
    """Suspend the job `pi`, and return it as soon as none of its pods is left."""
    edit(here, runPolicy={"suspend": True})
    here.until(PODS, lambda pods: not pods)
    return here.until_one(MPIJOBS, "pi", lambda job: not actives(job))


def actives(job: Obj) -> int:
    """Return how many of its pods run, by its status."""
    return sum(counts.get("active", 0) for counts in job["status"].get("replicaStatuses", {}).values())


def uid(obj: Obj) -> str:
    return str(obj["metadata"]["uid"])


def reported(here: Kubectl) -> list[tuple[str, int]]:
    """Return reason and count of the events of the job, by reason."""
    events = here.read_all(EVENTS)
    return sorted((each["reason"], each.get("count", 1)) for each in events if each["involvedObject"]["kind"] == "MPIJob")


def test_a_suspended_job_comes_back_where_the_queue_wants_it(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job()))
    before = until_true(namespace, "pi", "Running")
    launcher = namespace.read(JOBS, "pi-launcher")
    job = suspended(namespace)
    assert is_true(job, "Suspended")
    assert condition(job, "Running")["reason"] == "MPIJobSuspended"
    assert job["status"]["startTime"] == before["status"]["startTime"]
    assert namespace.read(JOBS, "pi-launcher")["spec"]["suspend"] is True
    # As Kueue does when the job is admitted: both templates and the resume in one edit.
    placed = {"template": {"spec": {"nodeSelector": LINUX, "tolerations": [TOLERATION]}}}
    edit(namespace, runPolicy={"suspend": False}, mpiReplicaSpecs={"Launcher": placed, "Worker": placed})
    until_true(namespace, "pi", "Running", timeout_seconds=START_SECONDS)
    again = namespace.read(JOBS, "pi-launcher")
    assert uid(again) == uid(launcher), "unsuspended, not created again"
    for pod in namespace.read_all(PODS):
        assert pod["spec"]["nodeSelector"] == LINUX
        assert TOLERATION in pod["spec"]["tolerations"]
    let_run(namespace, launcher_pod(namespace))
    finished = until_true(namespace, "pi", "Succeeded")
    assert not condition(finished, "UpdatePending")
    once = ("MPIJobCreated", "MPIJobResumed", "MPIJobSucceeded", "MPIJobSuspended")
    assert reported(namespace) == sorted([*((reason, 1) for reason in once), *running_twice(namespace)])


def running_twice(here: Kubectl) -> list[tuple[str, int]]:
    """Return the events of running, which happened twice: one event with a count of two, or two events."""
    found = [each for each in reported(here) if each[0] == "MPIJobRunning"]
    assert sum(count for _, count in found) == 2
    return found


def test_an_edit_of_a_running_job_is_pending_and_takes_effect_after_suspend_and_resume(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job(workers=1)))
    until_true(namespace, "pi", "Running")
    launcher = namespace.read(JOBS, "pi-launcher")
    edit(namespace, slotsPerWorker=2)
    until_true(namespace, "pi", "UpdatePending")
    assert uid(namespace.read(JOBS, "pi-launcher")) == uid(launcher)
    suspended(namespace)
    edit(namespace, runPolicy={"suspend": False})
    job = until_true(namespace, "pi", "Running", timeout_seconds=START_SECONDS)
    assert uid(namespace.read(JOBS, "pi-launcher")) != uid(launcher), "a Job cannot follow such an edit"
    assert not is_true(job, "UpdatePending")
    assert "slots=2" in namespace.read(CONFIG_MAPS, "pi-config")["data"]["hostfile"]
    let_run(namespace, launcher_pod(namespace))
    until_true(namespace, "pi", "Succeeded")


def test_a_job_created_suspended_has_all_but_pods_and_starts_when_it_is_let_go(namespace: Kubectl) -> None:
    job = with_script(pi_job(workers=1), "exit 0")
    job["spec"].setdefault("runPolicy", {})["suspend"] = True
    namespace.apply(job)
    job = until_true(namespace, "pi", "Suspended")
    assert "startTime" not in job["status"]
    namespace.until_one(JOBS, "pi-launcher", lambda launcher: launcher["spec"]["suspend"])
    for resource, name in ((SERVICES, "pi"), (CONFIG_MAPS, "pi-config"), (SECRETS, "pi-ssh")):
        assert namespace.read(resource, name)
    assert namespace.read_all(PODS) == []
    edit(namespace, runPolicy={"suspend": False})
    job = until_true(namespace, "pi", "Succeeded")
    assert job["status"]["startTime"]
    assert len(namespace.read_all(PODS, LAUNCHER)) == 1
    namespace.until(PODS, lambda workers: not workers, labels=WORKER)
