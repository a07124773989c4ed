"""A job that succeeded without its workers reports it, once, and no other does."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI, container, template, with_annotations, with_launcher, with_worker, with_workers
from fakes.semantics import projected
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller.objects.ssh_script import MARK
from mpiop.controller.observe import projections
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.status import next_status, transitions
from mpiop.kube.objects import Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMPLETE = {"type": "Complete"}


def stored(pod: Object) -> Object:
    """Return the pod as the store keeps it."""
    return cast("Object", projected(pod, projections.Pod))


def ended(phase: str = "Succeeded", *, container: str = "launcher", metadata: dict[str, Any] | None = None, **terminated: Any) -> Object:
    """Return the launcher's pod whose container ended so, as the store keeps it."""
    state = {"terminated": {"exitCode": 0, **terminated}}
    return stored(launcher_pod(phase, metadata=metadata, containerStatuses=[{"name": container, "state": state}]))


def status_of(*launcher_pods: Object, job: MPIJob = PI, outcome: dict[str, str] = COMPLETE) -> MPIJobStatus:
    """Return the job's status when its launcher Job has ended."""
    seen = observed(worker(0), worker(1), launcher=launcher(outcome=outcome), launcher_pods=launcher_pods)
    return next_status(launcher_attempt(job, seen), None, NOW)


def types(status: MPIJobStatus) -> list[str]:
    return [condition.type for condition in status.conditions]


def test_a_launcher_that_called_nobody_is_reported_before_its_success() -> None:
    status = status_of(ended())
    assert types(status)[-2:] == ["WorkersUnused", "Succeeded"]
    unused = status.condition("WorkersUnused")
    assert unused is not None
    assert (unused.status, unused.reason) == ("True", "NoWorkerReached")
    assert "any of the 2 workers: all ranks ran in pod pi-launcher-x" in unused.message
    assert "spec.mpiImplementation, which is OpenMPI" in unused.message
    assert (status.summary.state, status.summary.message) == ("Succeeded", unused.message)
    [event] = [change for change in transitions(PI.key, PI.status, status) if change.condition == "WorkersUnused"]
    assert (event.type, event.reason) == ("Warning", "NoWorkerReached")


def fields(**given: Any) -> dict[str, Any]:
    """Return the launcher's template whose container has these fields too."""
    return template(container(name="launcher", **given))


def running(*command: str) -> MPIJob:
    """Return a job whose launcher runs that."""
    return with_launcher(PI, fields(command=list(command)))


COMMANDS = [
    ("mpirun", running("/opt/openmpi/bin/mpirun", "-n", "2", "/pi"), "True"),
    ("Hydra's", running("sh", "-c", "cd /data && mpiexec.hydra -n 2 ./pi"), "True"),
    ("mpirun after a wait by ssh", running("sh", "-c", "until ssh pi-worker-0 true; do sleep 1; done; mpirun /pi"), "True"),
    ("an ssh of its own", running("bash", "-c", "for n in 0 1; do ssh pi-worker-$n hostname || exit 4; done"), None),
    ("Horovod", running("horovodrun", "-np", "2", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python", "train.py"), None),
    ("perhaps an agent of its own", with_launcher(PI, fields(command=["mpirun"], envFrom=[{"configMapRef": {"name": "a"}}])), "Unknown"),
    ("a script", running("bash", "/work/run.sh"), "Unknown"),
    ("the image's entrypoint", with_launcher(PI, fields(args=["--steps=9"])), "Unknown"),
]


@pytest.mark.parametrize(("job", "claim"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_it_claims_only_what_is_known(job: MPIJob, claim: str | None) -> None:
    status = status_of(ended(), job=job)
    unused = status.condition("WorkersUnused")
    assert (unused and unused.status) == claim
    is_alarm = any(change.condition == "WorkersUnused" for change in transitions(PI.key, PI.status, status))
    assert is_alarm == (claim == "True")
    assert unused is None or ("ssh-agent" in unused.message) == (claim == "Unknown")
    assert status.conditions[-1].type == "Succeeded"


HOST = {"hostNetwork": True}


@pytest.mark.parametrize(
    ("launcher_host", "worker_host", "nodes", "is_cause"),
    [
        (HOST, HOST, ("node-a", "node-a"), True),
        (HOST, HOST, ("node-a", "node-b"), False),
        ({}, HOST, ("node-a", "node-a"), False),
        (HOST, {}, ("node-a", "node-a"), False),
    ],
    ids=["one node", "two nodes", "workers only", "launcher only"],
)
def test_one_nodes_network_is_named_as_the_cause(
    launcher_host: dict[str, bool], worker_host: dict[str, bool], nodes: tuple[str, str], *, is_cause: bool
) -> None:
    job = with_launcher(PI, template(container(name="launcher", command=["mpirun", "/pi"]), **launcher_host))
    job = with_worker(job, template(container(), **worker_host))
    workers = [{**worker(index), "spec": {"nodeName": node}} for index, node in enumerate(nodes)]
    pod = {**ended(), "spec": {"nodeName": "node-a"}}
    seen = observed(*workers, launcher=launcher(outcome=COMPLETE), launcher_pods=(pod,))
    unused = next_status(launcher_attempt(job, seen), None, NOW).condition("WorkersUnused")
    assert unused is not None
    assert ("hostNetwork" in unused.message, "MPI library" in unused.message) == (is_cause, not is_cause)


FAILURE = {"type": "Failed", "reason": "BackoffLimitExceeded"}
OPTED_OUT = with_annotations(PI, {"mpiop.kubeflow.org/ssh-agent": "false"})
LOGGED = with_launcher(PI, fields(terminationMessagePolicy="FallbackToLogsOnError"))
OWN_PROGRAM = with_launcher(PI, fields(env=[{"name": "PRTE_MCA_plm_ssh_agent", "value": "rsh"}]))
FINE: list[tuple[str, list[Object], dict[str, Any]]] = [
    ("ssh was called", [ended(message=f"{MARK}\n")], {}),
    ("the program wrote a message of its own over the mark", [ended(message="loss 0.1")], {}),
    ("the launcher failed", [ended("Failed", exitCode=1)], {"outcome": FAILURE}),
    ("the pod's end is not seen yet", [stored(launcher_pod("Running"))], {}),
    ("another container than the launcher's ended", [ended(container="sidecar")], {}),
    ("the pod was made without the script", [ended(metadata={"annotations": {}})], {}),
    ("no pod is left", [], {}),
    ("opted out", [ended()], {"job": OPTED_OUT}),
    ("the end of the log is to be the message", [ended()], {"job": LOGGED}),
    ("a program of the user's", [ended()], {"job": OWN_PROGRAM}),
    ("no workers", [ended()], {"job": with_workers(PI, 0)}),
]


@pytest.mark.parametrize(("pods", "given"), [row[1:] for row in FINE], ids=[row[0] for row in FINE])
def test_who_is_not_reported(pods: list[Object], given: dict[str, Any]) -> None:
    assert "WorkersUnused" not in types(status_of(*pods, **given))


def test_a_pod_whose_end_is_seen_after_the_jobs_is_judged_then() -> None:
    before = status_of(stored(launcher_pod("Running")))
    after = status_of(ended(), job=replace(PI, status=before))
    assert types(before)[-1] == types(after)[-1] == "Succeeded"
    assert types(after)[-2] == "WorkersUnused"


def test_once_reported_it_stays_as_it_is() -> None:
    status = status_of(ended())
    assert status_of(ended(), job=replace(PI, status=status)) == status


def test_the_mark_is_no_part_of_a_failure() -> None:
    failed = ended("Failed", exitCode=3, message=f"{MARK}\n")
    with_words = ended("Failed", exitCode=3, message=f"{MARK}\nout of luck\n")
    for pod, end in ((failed, "exit code 3"), (with_words, "exit code 3: out of luck")):
        found = launcher_attempt(PI, observed(launcher=launcher(), launcher_pods=(pod,))).failures.last
        assert found is not None
        assert found.message.endswith(end)
