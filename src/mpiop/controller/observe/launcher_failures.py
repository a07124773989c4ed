"""How launcher pods failed, from the status of the pods and their containers.

Failed pods outlive a suspension, so they may belong to the time before a resume: `pods_of_this_run` leaves those out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.status_types import Attempt, Failure, MPIJobStatus
from mpiop.controller.objects.ssh_script import without_mark
from mpiop.controller.observe import pods
from mpiop.controller.observe.exit_codes import in_words
from mpiop.controller.observe.observed import Observed
from mpiop.kube.objects import Object, creation_time, is_terminating
from mpiop.kube.text import truncated

ATTEMPTS: Final = 3
"""The most that a status remembers."""
_CLOCK_TOLERANCE: Final = timedelta(seconds=10)
"""By how much the Job controller's clock, which gives a start its time, may differ from the API server's, which gives a pod its own."""


@dataclass(frozen=True, slots=True)
class FailedContainer:
    """The container of a launcher pod that failed, how it ended, and whether it was restarted since."""

    pod: Object
    name: str
    ended: Mapping[str, Any]
    is_restarted: bool


@dataclass(frozen=True, slots=True)
class LauncherFailures:
    """How the launcher has failed in this run.

    Attributes:
        attempts: The last failed attempts: those that the status has, and those of its pods that ended later.
        last: The failure of the newest pod that failed and still exists; None if none did.
        container: The container that `last` is about; None if no container of the pod failed.
        new: `last`, if the status does not have it; another attempt that ended in the same way is another failure.
    """

    attempts: tuple[Attempt, ...]
    last: Failure | None
    container: FailedContainer | None
    new: Failure | None


def launcher_failures(launcher_pods: Sequence[Object], status: MPIJobStatus) -> LauncherFailures:
    """Return the failures of the launcher pods of this run.

    The Job controller deletes a launcher pod that has used up its `backoffLimit` before it marks the Job as failed. Therefore the failure
    of a pod is stored as soon as it is seen.
    """
    pod = next((pod for pod in reversed(launcher_pods) if _has_failed(pod)), None)
    last = None if pod is None else _failure_of(pod)
    attempts = _attempts(launcher_pods, status.attempts)
    is_known = last is None or (last.is_same(status.last_failure) and attempts == status.attempts)
    return LauncherFailures(attempts, last, failed_container_of(pod) if pod is not None else None, None if is_known else last)


def pod_failure(pod: Object) -> Failure | None:
    """Return how a launcher pod failed, or a container of it that was restarted since; None if none did."""
    return _failure_of(pod) if _has_failed(pod) else None


def failed_exit_code(pod: Object) -> int | None:
    """Return the exit code with which a container of a launcher pod failed last; None if none did, or it has none."""
    failed = failed_container_of(pod)
    return failed.ended.get("exitCode") if failed else None


def _failure_of(pod: Object) -> Failure:
    status, failed = pod.get("status", {}), failed_container_of(pod)
    words = [f"pod {pod['metadata'].get('name', '')}"]
    if node := pods.node(pod):
        words.append(f"on node {node}")
    words.append(f"container {failed.name} {in_words(failed.ended.get('exitCode'), of_mpirun=True)}" if failed else "failed")
    ended = failed.ended if failed else dict[str, Any]()
    details = [detail for detail in (without_mark(ended.get("message") or ""), status.get("message")) if detail]
    reason = status.get("reason") or ended.get("reason") or "Error"
    return Failure(reason, truncated(": ".join([" ".join(words), *details])))


def pods_of_this_run(observed: Observed, status: MPIJobStatus) -> Sequence[Object]:
    """Return the launcher pods that were created since the job was started, or the Job controller resumed it."""
    if status.condition(c.CONDITION_SUSPENDED) is None or observed.launcher is None:
        return observed.launcher_pods
    started = timestamp(observed.launcher.get("status", {}).get("startTime"))
    if started is None or pods.condition_status(observed.launcher, "Suspended") == "True":
        return ()
    return [pod for pod in observed.launcher_pods if (creation_time(pod) or started) >= started - _CLOCK_TOLERANCE]


def _attempts(launcher_pods: Sequence[Object], known: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    found = map(failed_container_of, launcher_pods)
    for failed in sorted(filter(None, found), key=lambda each: str(each.ended.get("finishedAt"))):
        ended = timestamp(failed.ended.get("finishedAt"))
        if ended is not None and (not known or ended > known[-1].ended):
            known = (*known, _attempt(failed, ended, known[-1].number + 1 if known else 1))
    return known[-ATTEMPTS:]


def _attempt(failed: FailedContainer, ended: datetime, number: int) -> Attempt:
    return Attempt(
        number=number,
        pod=failed.pod["metadata"].get("name", ""),
        node=pods.node(failed.pod),
        started=timestamp(failed.ended.get("startedAt")),
        ended=ended,
        exit_code=failed.ended["exitCode"],
        reason=failed.ended.get("reason") or "Error",
    )


def _has_failed(pod: Object) -> bool:
    return failed_container_of(pod) is not None or (pods.phase(pod) == "Failed" and not is_terminating(pod))


def failed_container_of(pod: Object) -> FailedContainer | None:
    """Return the container that is the cause: it ended first and was not restarted; others may have failed because of it."""
    failed = sorted(_failed_containers(pod), key=lambda each: (each.is_restarted, each.ended.get("finishedAt", "")))
    return failed[0] if failed else None


def _failed_containers(pod: Object) -> Iterator[FailedContainer]:
    """Yield each container that failed and did not succeed later. Exit codes of a pod that is being deleted mean nothing.

    Neither do those of sidecars, which are init containers, once a main container has begun: the kubelet ends them after it.
    """
    main = pods.main_container_statuses(pod)
    has_begun = pods.phase(pod) == "Running" or any(map(pods.last_end, main))
    for status in main if has_begun else pods.container_statuses(pod):
        now, before = pods.terminated(status), pods.last_terminated(status)
        if now.get("exitCode") and not is_terminating(pod):
            yield FailedContainer(pod, status.get("name", ""), now, is_restarted=False)
        elif before.get("exitCode") and now.get("exitCode") != 0:
            yield FailedContainer(pod, status.get("name", ""), before, is_restarted=True)
