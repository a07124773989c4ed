"""Jobs in every phase at the moment when one operator takes the place of another, and what there was before and after it."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from e2e.jobs import condition, held, is_true, launcher_pod, let_run, pi_job, until_true, with_script
from e2e.kubectl import CHILDREN, Kubectl, Obj
from e2e.operator_pods import Operator
from mpiop.kube.resources import EVENTS, JOBS, MPIJOBS, PODS

ROOM = {"mpiop.test/room": "yes"}
"""A label that no node has until `make_room`: jobs that are starting wait for it."""


def suspended(name: str) -> Obj:
    """Return a job that does not start."""
    job = pi_job(name)
    job["spec"]["runPolicy"]["suspend"] = True
    return job


def starting(name: str) -> Obj:
    """Return a job for whose Pods there is no room yet."""
    job = held(pi_job(name))
    for spec in job["spec"]["mpiReplicaSpecs"].values():
        spec["template"]["spec"]["nodeSelector"] = ROOM
    return job


def running(name: str) -> Obj:
    """Return a job that runs until `let_run`."""
    return held(pi_job(name))


def failing(name: str) -> Obj:
    """Return a job that runs until `let_run`, and fails then."""
    job = held(with_script(pi_job(name), "exit 3"))
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    return job


def vanishing(name: str) -> Obj:
    """Return a job whose launcher's Job is gone as soon as it has ended."""
    job = running(name)
    job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = 0
    return job


PHASES: dict[str, tuple[Callable[[str], Obj], str]] = {
    "suspended": (suspended, "Suspended"),
    "starting": (starting, "Created"),
    "running": (running, "Running"),
    "finished": (running, "Running"),
    "failed": (failing, "Running"),
    "vanished": (vanishing, "Running"),
}
"""By phase: the job, and the condition that is True before the operator is taken away."""
KEPT = [name for name in PHASES if name != "vanished"]
"""Without that whose launcher Job is gone: ours outlive an absence of the operator, and Kubeflow's operator would run such a job again."""
GO_ON = ("suspended", "starting", "running")
ENDS = {"failed": "Failed", "vanished": "Failed"}
PATIENCE_SECONDS = 240
"""A launcher that theirs made may fail a few times before its workers answer, and is tried again with growing pauses."""
UNRECORDED: dict[str, Callable[[Kubectl, str], object]] = {
    "finished": lambda here, launcher: here.until_one(
        JOBS, launcher, lambda job: is_true(job, "Complete"), timeout_seconds=PATIENCE_SECONDS
    ),
    "failed": lambda here, launcher: here.until_one(JOBS, launcher, lambda job: is_true(job, "Failed"), timeout_seconds=PATIENCE_SECONDS),
    "vanished": lambda here, launcher: here.until_gone(JOBS, launcher, timeout_seconds=PATIENCE_SECONDS),
}
"""What is waited for after the launchers were let run, while no operator runs."""
OPPOSITE = {"Failed": "Succeeded", "Succeeded": "Failed"}


@dataclass
class Handover:
    """One change of the operator.

    Attributes:
        before: Every child of every job by UID, when no operator ran.
        after: The same when the new operator had brought to their ends the jobs that had ended before it came.
        jobs_before: The MPIJobs by phase when no operator ran.
        ended: The MPIJobs by phase at their ends.
    """

    here: Kubectl
    prefix: str
    names: Collection[str]
    before: dict[str, Obj] = field(default_factory=dict[str, Obj])
    after: dict[str, Obj] = field(default_factory=dict[str, Obj])
    jobs_before: dict[str, Obj] = field(default_factory=dict[str, Obj])
    ended: dict[str, Obj] = field(default_factory=dict[str, Obj])

    def job(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def jobs(self) -> dict[str, Obj]:
        """Return the MPIJobs that are to be made, by phase."""
        return {name: PHASES[name][0](self.job(name)) for name in self.names}

    def let_run(self, name: str) -> None:
        """Let the launcher of the job in that phase run."""
        let_run(self.here, launcher_pod(self.here, self.job(name), timeout_seconds=PATIENCE_SECONDS))

    def end_unseen(self) -> None:
        """Let the launchers end that should do so while no operator runs, and check everything."""
        for name in [name for name in self.names if name in UNRECORDED]:
            self.let_run(name)
            UNRECORDED[name](self.here, f"{self.job(name)}-launcher")
        self.before = children(self.here)
        self.jobs_before = {name: self.here.read(MPIJOBS, self.job(name)) for name in self.names}

    def see_through(self) -> None:
        """With the new operator at work, see each job to its end."""
        for name in [name for name in self.names if name in UNRECORDED]:
            self.ended[name] = until_true(self.here, self.job(name), ENDS.get(name, "Succeeded"), timeout_seconds=PATIENCE_SECONDS)
        self.after = children(self.here)
        make_room(self.here, "yes")
        self.let_run("running")
        resumed = json.dumps({"spec": {"runPolicy": {"suspend": False}}})
        self.here.run("patch", "mpijob", self.job("suspended"), "--type=merge", "--patch", resumed)
        self.let_run("starting")
        for name in GO_ON:
            self.ended[name] = until_true(self.here, self.job(name), "Succeeded", timeout_seconds=PATIENCE_SECONDS)

    def children_of(self, objects: dict[str, Obj], name: str) -> set[tuple[str, str]]:
        """Return name and UID of those of `objects` that belong to the job in phase `name`."""
        job = self.job(name)
        return {
            (each["metadata"]["name"], uid)
            for uid, each in objects.items()
            if each["metadata"]["name"] == job or each["metadata"]["name"].startswith(f"{job}-")
        }

    def assert_no_restart(self) -> None:
        """Fail if a container of a Pod of these jobs was started again."""
        uids = [uid for name in self.names for _, uid in self.children_of(self.after, name)]
        pods = [self.after[uid] for uid in uids if "containerStatuses" in self.after[uid].get("status", {})]
        assert pods
        for pod in pods:
            assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0], pod["metadata"]["name"]

    def assert_times_stay(self) -> None:
        """Fail if start or conditions of a job that ran were set again."""
        for name in [name for name in self.names if PHASES[name][1] == "Running"]:
            before, after = self.jobs_before[name], self.ended[name]
            assert after["status"]["startTime"] == before["status"]["startTime"], name
            assert condition(after, "Created") == condition(before, "Created"), name
            assert condition(after, "Running") == {**condition(before, "Running"), "status": "False"}, name

    def assert_right_end(self, name: str) -> None:
        """Fail unless the job in phase `name` ended as it should."""
        job, end = self.ended[name], ENDS.get(name, "Succeeded")
        assert is_true(job, end)
        assert not is_true(job, OPPOSITE[end])
        assert not is_true(job, "WorkersUnused")
        assert condition(job, "Running")["status"] == "False"
        assert job["status"]["completionTime"]

    def events(self, reason: str) -> dict[str, int]:
        """Return, by phase, how often `reason` was reported of a job of this change."""
        reported = dict[str, int]()
        for event in self.here.read_all(EVENTS):
            prefix, _, name = event["involvedObject"]["name"].partition("-")
            if (event["involvedObject"]["kind"], prefix, event["reason"]) == ("MPIJob", self.prefix, reason):
                reported[name] = reported.get(name, 0) + event.get("count", 1)
        return reported


def begin(cluster: Kubectl, here: Kubectl, prefix: str, names: Collection[str]) -> Handover:
    """With one operator at work, bring a job into each phase, take the operator away, and let those jobs end that should."""
    handover = Handover(here, prefix, names)
    make_room(cluster, None)
    here.apply(*handover.jobs().values())
    for name in names:
        until_true(here, handover.job(name), PHASES[name][1])
    starting = f"training.kubeflow.org/job-name={handover.job('starting')}"
    here.until(PODS, lambda pods: len(pods) == 3, labels=starting)
    Operator(cluster.within("mpi-operator")).stop()
    handover.end_unseen()
    return handover


def children(here: Kubectl) -> dict[str, Obj]:
    """Return every child of every job by UID."""
    found = (each for resource in CHILDREN for each in here.read_all(resource) if "ownerReferences" in each["metadata"])
    return {each["metadata"]["uid"]: each for each in found}


def make_room(cluster: Kubectl, room: str | None) -> None:
    """Give every node the label that starting jobs wait for; None takes it away."""
    patch = json.dumps({"metadata": {"labels": dict.fromkeys(ROOM, room)}})
    for node in cluster.run("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split():
        cluster.run("patch", "node", node, "--patch", patch)
