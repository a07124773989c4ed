"""An allocation: a job whose launcher holds the workers, and runs one `mpirun` for each step (docs/adr/0044-allocations.md)."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final, NamedTuple

from mpiop.api import constants as c
from mpiop.api.annotations import ALLOCATION
from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.client.arguments import check_arguments
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.job import Job
from mpiop.client.launcher_log import container_of
from mpiop.client.manifest import escaped, manifest, mpirun
from mpiop.client.progress import desired_workers, is_worker, newest_launcher, progress
from mpiop.client.spec import JobSpec
from mpiop.client.status import status_of
from mpiop.kube.text import whole_number

PROGRAM: Final = "alloc"
"""In place of a program: the name of an allocation without one begins with it."""
_FOLDER: Final = "/tmp/mpiop"  # noqa: S108 - of the launcher's container, which others do not share
_SCRIPT: Final = f"{_FOLDER}/bin/mpiop"
_RANKS: Final = "MPIOP_RANKS"
_START: Final = f"""\
umask 077
rm -rf {_FOLDER}
mkdir -p {_FOLDER}/bin && printf '%s' "$1" >{_SCRIPT} && chmod 700 {_SCRIPT} || exit 1
exec /bin/sh {_SCRIPT} hold "$2" "$3"
"""


def allocation_manifest(spec: JobSpec, name: str, *, idle: int = 0) -> dict[str, Any]:
    """Return the MPIJob of an allocation.

    Args:
        spec: Of the job. `ranks` and `mpirun_args` are those of a step that names no others.
        name: Of the job; "" lets the API server make one.
        idle: Seconds without a step or a used shell after which it ends; 0 for never.

    Raises:
        InvalidError: An option of `mpirun` or a variable is too long for Linux, or the patch is not one.
    """
    job = manifest(replace(spec, time_limit=None, is_tagged=False), name)
    job["metadata"].setdefault("annotations", {})[ALLOCATION.name] = "true"
    library = LIBRARIES[spec.mpi]
    container = job["spec"]["mpiReplicaSpecs"][c.LAUNCHER]["template"]["spec"]["containers"][0]
    options = mpirun(replace(spec, is_tagged=False))[3 : -len(spec.command)]
    script = files("mpiop.client").joinpath("allocation.sh").read_text(encoding="utf-8")
    words = [_START, "mpiop", script, shlex.join(options), shlex.join(library.tag_options)]
    container |= {"command": ["/bin/sh", "-c"], "args": escaped(words)}
    settings = {
        _RANKS: str(spec.ranks),
        "MPIOP_IDLE": str(idle),
        "MPIOP_TIME_LIMIT": str(spec.time_limit or 0),
        "MPIOP_EXPORT_OPTION": library.export_option,
    }
    container["env"] = [*(container.get("env") or ()), *({"name": key, "value": value} for key, value in settings.items())]
    check_arguments(job)
    return job


def script_command(verb: str, *words: str) -> list[str]:
    """Return the command line that runs a verb of the script in the launcher's container."""
    return ["/bin/sh", _SCRIPT, verb, *words]


def is_allocation(job: Mapping[str, Any]) -> bool:
    """Return whether an MPIJob is an allocation."""
    annotations: Mapping[str, str] = job["metadata"].get("annotations") or {}
    return annotations.get(ALLOCATION.name) == "true"


def fitting(job: Mapping[str, Any], ranks: int | None) -> int:
    """Return how many steps of so many ranks fit into the slots of an allocation at a time, at least 1; None is its own number."""
    hosts = desired_workers(job) + bool(job["spec"].get("runLauncherAsWorker"))
    container = job["spec"]["mpiReplicaSpecs"][c.LAUNCHER]["template"]["spec"]["containers"][0]
    own = next((str(each.get("value")) for each in container.get("env") or () if each["name"] == _RANKS), "")
    return max(1, hosts * status_of(job).slots // (ranks or whole_number(own) or 1))


def wait_until_running(job: Job, report: Callable[[str], None] | None = None) -> None:
    """Wait until launcher and workers of an allocation run; `report` is called with each new line of progress.

    Raises:
        JobFailed: It ended, or was deleted.
    """
    reported = None
    for line in job.watch():
        if report is not None and line != reported:
            report(line)
        reported = line
        if job.status.is_finished:
            raise job.status.failure(job.name)
        if job.status.condition(c.CONDITION_RUNNING) is not None:
            return


class Launcher(NamedTuple):
    """Where the steps of an allocation run.

    Attributes:
        pod: Name of the launcher's Pod.
        container: Name of its first container.
        workers: States of the workers, by host.
    """

    pod: str
    container: str
    workers: Mapping[int, "WorkerState"]


def launcher_of(job: Job) -> Launcher:
    """Return the launcher of an allocation, which was just read; its Pods are read here.

    Raises:
        InvalidError: The job is not an allocation.
        ClientError: It has ended, or does not run now.
    """
    if not is_allocation(job.raw):
        raise InvalidError(f"job {job.name} is not an allocation: kubectl mpi alloc makes one")
    status, name = job.status, f"allocation {job.name}"
    if status.is_finished:
        raise ClientError(f"{name} has ended ({status.state}){f': {status.message}' if status.message else ''}")
    pods = job.pods()
    launcher = newest_launcher(pods)
    if status.condition(c.CONDITION_RUNNING) is None or launcher is None:
        raise ClientError(f"{name} does not run now: {progress(job.raw, pods)}")
    return Launcher(launcher["metadata"]["name"], container_of(launcher), workers_of(job, pods))


class WorkerState(NamedTuple):
    """What shows that a worker was lost.

    Attributes:
        name: Of its Pod.
        identity: UID of the Pod and number of restarts, which differ after a loss.
        problem: What is wrong with it now, or "".
    """

    name: str
    identity: tuple[str, int]
    problem: str


def workers_of(job: Job, pods: Sequence[Mapping[str, Any]]) -> dict[int, WorkerState]:
    """Return the states of the workers among the Pods of an allocation, by host: the number of their line in the hostfile."""
    first = 1 if job.raw["spec"].get("runLauncherAsWorker") else 0
    states = (_state(pod) for pod in pods if is_worker(pod))
    return {first + int(state.name.rpartition("-")[2]): state for state in states}


def lost_worker(hosts: Sequence[int], before: Mapping[int, WorkerState], now: Mapping[int, WorkerState]) -> str:
    """Return a sentence about the first of the hosts whose worker was lost since `before`; "" if none was."""
    for host in hosts:
        known, found = before.get(host), now.get(host)
        if known is None:
            continue
        if found is None:
            return f"worker {known.name} was lost: its Pod was deleted"
        if found.problem:
            return f"worker {known.name} was lost: {found.problem}"
        if found.identity != known.identity:
            return f"worker {known.name} was lost: it was started again"
    return ""


class Watch:
    """Compares the workers of an allocation with those at the beginning of a step."""

    def __init__(self, job: Job, workers: Mapping[int, WorkerState]) -> None:
        """Take the states of the workers at the beginning."""
        self._job, self._before = job, workers

    def lost(self, hosts: Sequence[int]) -> str:
        """Return which worker was lost since, or ""; also if the API server does not answer."""
        try:
            return lost_worker(hosts, self._before, workers_of(self._job, self._job.pods()))
        except ClientError:
            return ""


def _state(pod: Mapping[str, Any]) -> WorkerState:
    metadata: Mapping[str, Any] = pod["metadata"]
    status: Mapping[str, Any] = pod.get("status") or {}
    rows: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or ()
    restarts = sum(row.get("restartCount", 0) for row in rows)
    states: Sequence[Mapping[str, Any]] = [row.get("state") or {} for row in rows]
    ends: Sequence[Mapping[str, Any]] = [state["terminated"] for state in states if state.get("terminated")]
    problem = ""
    if metadata.get("deletionTimestamp"):
        problem = "its Pod is being deleted"
    elif ends:
        problem = f"its container ended ({ends[0].get('reason', 'Error')}, exit code {ends[0].get('exitCode')})"
    elif status.get("phase") == "Failed":
        problem = f"its Pod has failed ({status.get('reason', 'Error')})"
    return WorkerState(metadata["name"], (metadata["uid"], restarts), problem)
