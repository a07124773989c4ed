"""Why an attempt of the launcher failed, in one sentence: the verdict.

The sources, the most trusted first: a worker that the attempt lost, or that ended before it; what Kubernetes reports about the launcher's
pod; the end of its log (`mpiop.api.log_rules`). If none of them knows, only the exit code remains, which does not explain anything.

A loss counts only if it ended the attempt: the attempt began with the worker, lost it while it ran, and ended within seconds after that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from mpiop.api import constants as c
from mpiop.api.annotations import MAX_RESTARTS
from mpiop.api.log_findings import Finding, finding
from mpiop.api.log_rules import LONG_NAME
from mpiop.api.names import worker_index
from mpiop.api.status import timestamp
from mpiop.api.status_types import Condition, Failure, MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller import causes
from mpiop.controller.causes import Problem, facts_of, problem
from mpiop.controller.objects.ssh_script import MARK, leaves_mark
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem, is_lost
from mpiop.controller.observe.exit_codes import in_words
from mpiop.controller.observe.launcher_failures import FailedContainer
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.pod_ends import memory_problem, runtime_words
from mpiop.controller.restart.attempt import LauncherAttempt, launcher_attempt
from mpiop.controller.restart.lost_workers import Loss, created
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.pod_problems import START_REASONS, ended_worker_problems
from mpiop.controller.status.reconciling import current_problem
from mpiop.kube.objects import Object, is_terminating
from mpiop.kube.text import truncated

_MOST_BYTES: Final = 600
_CRASHES: Final = frozenset({134, 139})
"""SIGABRT, and SIGSEGV: the first process of a container cannot abort in the usual way."""
_KILLED: Final = 137
_OFTEN_MEMORY: Final = ". Often a program has used more memory than the limit of its container"
_TOO_LATE: Final = (
    "the job took longer than spec.runPolicy.activeDeadlineSeconds allows. Raise it, or remove it (kubectl mpi run --time-limit)."
)
UNSEEN_END: Final = (
    "the launcher's Pod did not end by itself: it was deleted, evicted or preempted, or it failed while no operator ran. "
    "It is attempted again if spec.runPolicy.backoffLimit allows it."
)
"""The Job controller reports a failure, and no Pod that failed was seen: one that is deleted is gone before the Job has failed."""
_WITH_BUDGET: Final = f"That ends a job without the annotation {MAX_RESTARTS.name}."
_LAST_SECONDS: Final = timedelta(seconds=30)
"""How long `mpirun` may take to end after it has lost a worker."""
_CLOCK_TOLERANCE: Final = timedelta(seconds=2)
"""By how much the clocks of the API server and of nodes may differ, which write whole seconds."""


@dataclass(frozen=True, slots=True)
class LastWords:
    """What was read from the log of a launcher that failed: its end, and what a rule finds in it."""

    end: str = ""
    finding: Finding | None = None


NO_WORDS: Final = LastWords()


def judged(attempt: LauncherAttempt, words: LastWords) -> Failure | None:
    """Return how the launcher failed last, and why; the stored failure unless another is new, or a loss that caused it is seen later."""
    known, failures = attempt.job.status.last_failure, attempt.failures
    failed, new = failures.container, failures.new
    if new is not None:
        cause = _cause(attempt, failed, words) if failed is not None else f"{new.reason}: {new.message}"
        return replace(new, log=words.end, cause=truncated(cause, _MOST_BYTES))
    is_blamed = known is None or known.cause.partition(":")[0] in causes.CAUSES
    if known is None or is_blamed or failed is None or not known.is_same(failures.last):
        return known
    found = _loss(_attempt_of(attempt, failed), failed)
    return known if found is None else replace(known, cause=truncated(_in_words(found), _MOST_BYTES))


def verdict(status: MPIJobStatus) -> str:
    """Return why the launcher of a job failed last: the cause, or what its exit code means, then which attempt it was; "" without one."""
    last = status.last_failure
    if last is None:
        return ""
    if last.cause:
        return truncated(f"{last.cause.rstrip('.')}. Last attempt: {last.message}")
    if not status.attempts:
        return last.message
    code = in_words(status.attempts[-1].exit_code, of_mpirun=True)
    where = last.message.replace(f" {code}", "", 1)
    hint = _OFTEN_MEMORY if status.attempts[-1].exit_code == _KILLED else ""
    return truncated(f"the launcher failed with {code}; its log may show the cause{hint}. Last attempt: {where}")


def waiting_cause(status: MPIJobStatus) -> str:
    """Return the cause for which a job still waits, or "": it is that of an end that has nothing to do with the launcher."""
    found = current_problem(status)
    return _in_words(found) if found is not None else ""


def late_verdict(status: MPIJobStatus, reason: str) -> str:
    """Return why a job failed that its launcher did not fail: what it waited for, or its deadline; "" if only `reason` is known."""
    return waiting_cause(status) or (_TOO_LATE if reason == c.DEADLINE_EXCEEDED else "")


def waited_end(status: MPIJobStatus, reason: str, message: str, now: datetime) -> Condition:
    """Return the condition Failed of a job that ends for another cause than its launcher, such as its deadline, with what it waited for."""
    cause = waiting_cause(status)
    text = truncated(f"{message}. Cause: {cause}" if cause else message)
    return cond.make(c.CONDITION_FAILED, "True", reason, text, now)


def evicted_worker(observed: Observed) -> str:
    """Return which worker was evicted first by name, and why."""
    evicted = (pod for _, pod in sorted(observed.workers.items()) if pods.is_evicted(pod))
    found = next(filter(None, map(disruption_problem, evicted)), None)
    return f"{facts_of(found.reason, found.message)}. {_WITH_BUDGET}" if found is not None else ""


def _cause(attempt: LauncherAttempt, failed: FailedContainer, words: LastWords) -> str:
    """Return why the container of a launcher failed, or "" if only its exit code is known."""
    found = _worker_cause(_attempt_of(attempt, failed), failed) or _launcher_cause(failed) or _init_cause(failed)
    if found is not None:
        return _in_words(found)
    if version := _crashed_of_its_name(attempt.job, failed):
        return f"mpirun crashed before it called a worker, as {version} does if the job's name is this long. {LONG_NAME}"
    in_message = finding(str(failed.ended.get("message") or ""))  # with FallbackToLogsOnError it is the end of the log
    return str(words.finding or in_message or "")


def _in_words(found: Problem) -> str:
    return f"{found.reason}: {found.message}"


def _launcher_cause(failed: FailedContainer) -> Problem | None:
    """Return what Kubernetes reports about the launcher's own end."""
    reason = failed.ended.get("reason")
    if (disrupted := disruption_problem(failed.pod)) is not None:
        return disrupted
    if reason == causes.OOM_KILLED:
        return memory_problem(failed.pod, failed.name)
    if reason in START_REASONS:
        where = f"container {failed.name} of pod {failed.pod['metadata'].get('name', '')}"
        words = runtime_words(str(failed.ended.get("message") or "")) or reason
        return problem(causes.START_ERROR, f"{where} could not be started: {words}")
    return None


def _init_cause(failed: FailedContainer) -> Problem | None:
    """Return the init container that failed before `mpirun` could begin."""
    if not any(row.get("name") == failed.name for row in pods.init_container_statuses(failed.pod)):
        return None
    where = f"container {failed.name} of pod {failed.pod['metadata'].get('name', '')}"
    return problem(causes.INIT_FAILED, f"{where} ended: {in_words(failed.ended.get('exitCode'))}")


def _crashed_of_its_name(job: MPIJob, failed: FailedContainer) -> str:
    """Return the version of the MPI library that crashes because of the job's long name, if `mpirun` crashed early; else ""."""
    has_crashed = failed.ended.get("exitCode") in _CRASHES and leaves_mark(job) and not _called_ssh(job, failed)
    return job.library.crashing_version(job.name) if has_crashed else ""


def _worker_cause(failed_attempt: LauncherAttempt | None, failed: FailedContainer) -> Problem | None:
    """Return the worker without which the attempt could not begin or continue."""
    if failed_attempt is None:
        return None
    job, beginning = failed_attempt.job, failed_attempt.beginning
    if beginning is None or beginning.restarts < failed_attempt.restarts:
        return next(ended_worker_problems(job, failed_attempt.observed), None) if _called_ssh(job, failed) else None
    return _loss(failed_attempt, failed)


def _loss(attempt: LauncherAttempt | None, failed: FailedContainer) -> Problem | None:
    """Return the worker that the failed attempt began with and lost; None if the pod notes the beginning of another attempt."""
    if attempt is None or attempt.beginning is None or not attempt.has_begun:
        return None
    job, observed = attempt.job, attempt.observed
    ended = timestamp(failed.ended.get("finishedAt"))
    if (stored := _stored_loss(attempt, ended)) is not None:
        return stored
    went = list(_candidates(observed, attempt.beginning.newest))
    if job.status.is_finished:  # then workers are deleted, and nodes may be lost, for other causes
        went = [(name, pod) for name, pod in went if observed.workers.get(name) is pod and _signs(pod) and not is_terminating(pod)]
    lost = [(name, pod) for name, pod in went if _ended_it(pod, failed, ended)]
    return _problem_of(job, observed, *min(lost, key=lambda each: _first_sign(each[1]))) if lost else None


def _attempt_of(current: LauncherAttempt, failed: FailedContainer) -> LauncherAttempt | None:
    """Return the attempt that failed; None if another container than that of `mpirun` failed."""
    if failed.name != current.job.launcher.container.get("name", ""):
        return None
    last = launcher_attempt(current.job, current.observed, failed.pod)
    return replace(last, restarts=last.restarts - failed.is_restarted)


def _called_ssh(job: MPIJob, failed: FailedContainer) -> bool:
    """Return whether `mpirun` has called a worker, as far as that is known: an earlier failure is the launcher's own."""
    return not leaves_mark(job) or str(failed.ended.get("message") or "").startswith(MARK)


def _stored_loss(attempt: LauncherAttempt, ended: datetime | None) -> Problem | None:
    """Return the loss in the status; the `mpirun` of a rigid library may hang for minutes after it."""
    lost = attempt.job.status.lost_worker
    if lost is None or lost.attempt != attempt.name:
        return None
    is_late = ended is not None and ended - lost.time > _LAST_SECONDS and not attempt.job.library.is_rigid
    return None if is_late else Problem(lost.reason, lost.message)


def _candidates(observed: Observed, newest: str) -> Iterator[tuple[str, Object]]:
    """Yield the workers that the attempt began with and that went: those that exist, and the last states of those that are gone."""
    for name in sorted(observed.workers.keys() | observed.deleted_workers.keys()):
        for pod in (observed.workers.get(name), observed.deleted_workers.get(name)):
            if pod is not None and created(pod) <= newest:
                yield name, pod
                break


def _ended_it(worker: Object, failed: FailedContainer, ended: datetime | None) -> bool:
    """Return whether a worker went while the attempt ran, and the attempt ended soon after."""
    signs, started = _signs(worker), timestamp(failed.ended.get("startedAt"))
    if not signs:  # conditions have no time here, and are about now
        return is_lost(worker)
    if started is None or ended is None:
        return False
    return started - _CLOCK_TOLERANCE <= max(signs) and min(signs) - _CLOCK_TOLERANCE <= ended <= max(signs) + _LAST_SECONDS


def _signs(worker: Object) -> list[datetime]:
    """Return when a worker was asked to go, and when its containers ended."""
    metadata = worker["metadata"]
    signs = [timestamp(pods.last_end(row).get("finishedAt")) for row in pods.main_container_statuses(worker)]
    if (deletion := timestamp(metadata.get("deletionTimestamp"))) is not None:
        signs.append(deletion - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0))
    return [sign for sign in signs if sign is not None]


def _first_sign(worker: Object) -> float:
    return min((sign.timestamp() for sign in _signs(worker)), default=0.0)


def _problem_of(job: MPIJob, observed: Observed, name: str, pod: Object) -> Problem:
    index = worker_index(job.name, name)
    was_deleted = is_terminating(pod) or observed.workers.get(name) is not pod
    if was_deleted and pods.disruption(pod) is None and index is not None and index >= job.worker_replicas:
        return problem(causes.SCALED_DOWN, f"worker {name} was removed, because the job was scaled down to {job.worker_replicas}")
    return Loss(name, pod, exists=observed.workers.get(name) is pod).problem
