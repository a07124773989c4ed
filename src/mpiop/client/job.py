"""A job that was submitted."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mpiop.api import constants as c
from mpiop.api.mpi_implementations import IMPLEMENTATIONS, OPEN_MPI, Implementation
from mpiop.client import logs
from mpiop.client.api import Api, LogOptions, Object
from mpiop.client.errors import ClientError, InvalidError, JobFailed, JobTimeoutError, NotFoundError, UnreachableError
from mpiop.client.launcher_log import LauncherLog, container_of, run_of
from mpiop.client.manifest import ranks_of
from mpiop.client.progress import is_controlled, newest_launcher, progress
from mpiop.client.spec import OUTPUT
from mpiop.client.status import JobStatus, is_unseen, status_of
from mpiop.client.tags import RankLines, Tagged
from mpiop.client.why import why

POLL_SECONDS: Final = 0.5
LOG_LINES: Final = 200
"""So many lines of a failed job's log are searched for its cause."""
_TRIES: Final = 30
"""So often the log of a job that has ended is asked for: its node may be lost for ever."""


class Look(NamedTuple):
    """The progress of a job; `is_last` if it has ended."""

    line: str
    is_last: bool


class Job:
    """A job in the cluster. What it shows is as of the last `refresh`.

    Attributes:
        raw: The MPIJob as it was read last.
    """

    def __init__(self, api: Api, raw: Object, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Take an MPIJob as it was read."""
        namespace = raw["metadata"].get("namespace") or api.namespace
        self._api = api if namespace == api.namespace else api.within(namespace)
        self.raw, self._pause = raw, pause
        self._pods: Sequence[Object] = ()

    def __repr__(self) -> str:
        """Return namespace, name and state."""
        return f"<Job {self.namespace}/{self.name}: {self.status.state}>"

    @property
    def name(self) -> str:
        """Return its name."""
        name: str = self.raw["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        return self._api.namespace

    @property
    def status(self) -> JobStatus:
        """Return how it was at the last `refresh`."""
        return status_of(self.raw)

    @property
    def is_tagged(self) -> bool:
        """Return whether each line of its log names a rank."""
        return bool(self.raw["metadata"].get("annotations", {}).get(OUTPUT) == "tagged")

    @property
    def ranks(self) -> int | None:
        """Return how many ranks it has; None if its command line does not begin with that number."""
        return ranks_of(self.raw, self.library)

    @property
    def library(self) -> Implementation:
        """Return its MPI library; Open MPI if it names one that is not known."""
        return IMPLEMENTATIONS.get(self.raw["spec"].get("mpiImplementation", ""), OPEN_MPI)

    def refresh(self) -> JobStatus:
        """Read it again and return how it is.

        Raises:
            NotFoundError: It was deleted.
        """
        found = self._api.job(self.name)
        if found["metadata"].get("uid") != self.raw["metadata"].get("uid"):
            raise NotFoundError(f"job {self.namespace}/{self.name} was deleted; another has its name now")
        self.raw = found
        return self.status

    def pods(self) -> Sequence[Object]:
        """Read its Pods, launcher and workers."""
        self._pods = [pod for pod in self._api.pods(self.name) if is_controlled(self.raw, pod)]
        return self._pods

    @property
    def launcher(self) -> Mapping[str, Any] | None:
        """Return the newest Pod of its launcher when its Pods were read last; None if there was none."""
        return newest_launcher(self._pods)

    @property
    def has_output(self) -> bool:
        """Return whether its launcher had begun to run when its Pods were read last."""
        return run_of(self.launcher) is not None

    def progress(self) -> str:
        """Return the progress of the job in one line."""
        return progress(self.raw, self.pods())

    def why(self, *, with_log: bool = True) -> str:
        """Explain the job's state and suggest a fix. For a failed job, add the end of its log, unless `with_log` is false."""
        self.refresh()
        pods = self.pods()
        uids = [self.raw["metadata"]["uid"], *(pod["metadata"]["uid"] for pod in pods)]
        log = self._end_of_log() if self.status.is_finished and not self.status.has_succeeded else ()
        return why(self.raw, pods, [event for uid in uids[:5] for event in self._api.events(uid)], log, with_log=with_log)

    def failure(self) -> JobFailed:
        """Return why it failed, as an error with the end of its launcher's log, which is read with the rights of the user."""
        failure = self.status.failure(self.name)
        try:
            lines = self._read_end_of_log()
        except ClientError as error:
            failure.log_problem = str(error)
        else:
            failure.log = "\n".join(lines)
        return failure

    def _end_of_log(self) -> Sequence[str]:
        """Return the last lines of the launcher's log, or of what was kept of it."""
        try:
            return self._read_end_of_log()
        except ClientError:  # for example, the user may not read it
            return self._kept_lines()

    def _read_end_of_log(self) -> Sequence[str]:
        """Return the last lines of the launcher's log, or of what was kept of it where there is no log.

        Raises:
            ForbiddenError: The user may not read it.
            UnreachableError: It could not be read now.
        """
        if (pod := self.launcher) is not None and self.has_output:
            with contextlib.suppress(NotFoundError, InvalidError):  # its container never ran, or the Pod has just gone
                lines = logs.read_lines(self._api, pod["metadata"]["name"], container_of(pod), LogOptions(tail=LOG_LINES))
                return [_decoded(line) for line in self.rank_lines().whole(line.text for line in lines)]
        return self._kept_lines()

    def _kept_lines(self) -> Sequence[str]:
        return [_decoded(line) for line in self.kept_log()][-LOG_LINES:]

    def wait(self, timeout: float | None = None, *, report: Callable[[str], None] | None = None) -> JobStatus:
        """Wait until it has succeeded.

        Args:
            timeout: In seconds; None for as long as it takes.
            report: Called with each new line of progress.

        Raises:
            JobFailed: It failed, or was deleted. Of a failure, the message ends with the end of the launcher's log.
            JobTimeoutError: It has not ended in time.
        """
        until = None if timeout is None else time.monotonic() + timeout
        for line in _reported(self.watch(), report):
            if until is not None and time.monotonic() >= until and not self.status.is_finished:
                raise JobTimeoutError(f"job {self.name} has not ended within {timeout:g} s: {line}")
        if not self.status.has_succeeded:
            raise self.failure()
        return self.status

    def is_seen_within(self, seconds: float) -> bool:
        """Return whether an operator has written its status, after waiting so long at most; True also if it cannot be read."""
        with contextlib.suppress(ClientError):
            for _ in range(round(seconds / POLL_SECONDS)):
                self.refresh()
                if not is_unseen(self.raw):
                    return True
                self._pause(POLL_SECONDS)
            return False
        return True

    def wait_for_output(self, report: Callable[[str], None] | None = None) -> None:
        """Wait until its launcher has begun to run, or it has ended; `report` is called with each new line of progress.

        Raises:
            JobFailed: It was deleted.
        """
        for _ in _reported(self.watch(), report):
            if self.has_output:
                return

    def watch(self) -> Iterator[str]:
        """Yield the progress again and again until the job has ended, also while the API server cannot be reached.

        Raises:
            JobFailed: It was deleted.
        """
        while True:
            line, is_last = self.look()
            yield line
            if is_last:
                return
            self._pause(POLL_SECONDS)

    def look(self) -> Look:
        """Read the job and its Pods once, also while the API server cannot be reached.

        Raises:
            JobFailed: It was deleted.
        """
        try:
            status = self.refresh()
            return Look(self.progress(), status.is_finished)
        except NotFoundError as error:
            raise JobFailed(self.name, "Deleted", "somebody deleted it before it ended") from error
        except UnreachableError as error:
            return Look(f"waits for the API server: {error}", is_last=False)

    def pausing_by(self, pause: Callable[[float], None]) -> "Job":
        """Return the same job, which calls `pause` with the seconds between two requests."""
        return Job(self._api, self.raw, pause=pause)

    def logs(self, *, follow: bool = False, since_seconds: int | None = None) -> Iterator[str]:
        """Yield the lines of the launcher's log, without the tags of ranks; with `follow` until the job has ended.

        Where the Pod is gone, the kept end of the log.
        """
        yield from map(_decoded, self.tagged_logs(follow=follow, since_seconds=since_seconds))

    def tagged_logs(self, *, follow: bool = False, since_seconds: int | None = None) -> Iterator[Tagged]:
        """Yield the same as bytes with the rank of each line, if the job tags its output."""
        log = LauncherLog(self._api, LogOptions(follow=follow, since_seconds=since_seconds), self.rank_lines)
        for _ in self.watch() if follow else self._read_once():
            yield from log.read(self._pods, is_last=not follow or self.status.is_finished)
        for _ in range(_TRIES if follow else 0):
            if log.problem is None:
                break
            self._pause(logs.RETRY_SECONDS)
            yield from log.read(self._pods, is_last=True)
        if log.problem is not None:
            raise log.problem
        if not log.has_lines:
            yield from self.kept_log()

    def kept_log(self) -> Iterator[Tagged]:
        """Yield the lines that were kept of the log of its last failed attempt."""
        return self.rank_lines().whole(self.status.log.encode().splitlines())

    def rank_lines(self) -> RankLines:
        """Return what makes lines of ranks of the launcher's log."""
        return RankLines(self.library if self.is_tagged else None)

    def _read_once(self) -> Iterator[str]:
        self.refresh()
        yield self.progress()

    def suspend(self) -> None:
        """Let its Pods be deleted, until it is resumed."""
        self._patch({"runPolicy": {"suspend": True}})

    def resume(self) -> None:
        """Start it again after `suspend`."""
        self._patch({"runPolicy": {"suspend": False}})

    def scale(self, workers: int) -> None:
        """Change the number of workers."""
        self._patch({"mpiReplicaSpecs": {c.WORKER: {"replicas": workers}}})

    def _patch(self, spec: Object) -> None:
        """Change fields of exactly this job; what others change at the same time stays."""
        self._api.patch_job(self.name, {"metadata": {"uid": self.raw["metadata"]["uid"]}, "spec": spec})

    def delete(self) -> None:
        """Delete the job with its Pods and other objects; do nothing if it is gone."""
        self._api.delete_job(self.raw)


def _decoded(line: Tagged) -> str:
    return line.text.decode(errors="replace")


def _reported(lines: Iterator[str], report: Callable[[str], None] | None) -> Iterator[str]:
    """Yield `lines`, and call `report` with each that differs from the one before."""
    reported = None
    for line in lines:
        if report is not None and line != reported:
            report(line)
        reported = line
        yield line
