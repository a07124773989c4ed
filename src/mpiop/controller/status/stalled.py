"""Why a job makes no progress: the most important of its problems."""

from collections.abc import Collection, Sequence

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.rejections import is_awaited_again
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.status.pod_problems import pod_problems
from mpiop.controller.status.reconciling import current_problem
from mpiop.controller.status.refusals import FailedWrite, refusal
from mpiop.controller.status.restarts import loss_problem
from mpiop.kube.objects import Unreadable, is_terminating, key_of


def find_problem(attempt: LauncherAttempt, failed: Sequence[FailedWrite], stuck: Problem | None) -> Problem | None:
    """Return the most important problem that a user has to solve; None if there is none. `stuck` is that of a Terminating child."""
    job, observed = attempt.job, attempt.observed
    refused = next((found for found in map(refusal, failed) if found is not None), None)
    found = refused or stuck or next(pod_problems(job, observed), None)
    return found or _awaited_again(job, observed) or loss_problem(attempt)


def _awaited_again(job: MPIJob, observed: Observed) -> Problem | None:
    """Return the stored problem of a worker that was rejected, until a kubelet accepts its next Pod: only then it is solved."""
    stored = current_problem(job.status) or job.status.true_condition(c.CONDITION_DEGRADED)
    if job.is_suspended or stored is None or stored.reason != causes.WORKER_REJECTED:
        return None
    is_awaited = any(is_awaited_again(observed, name) for name in job.worker_names)
    return Problem(stored.reason, stored.message) if is_awaited else None


def ignored_problem(ignored: Sequence[str]) -> Problem | None:
    """Return the problem of a job that has begun, and whose annotations are wrong since (`MPIJob.ignored`)."""
    return problem(causes.ANNOTATION_IGNORED, "; ".join(ignored)) if ignored else None


def unreadable_problem(unreadable: Collection[Unreadable]) -> Problem:
    """Return the problem that objects cannot be decoded; the first by kind and name is named."""
    first = min(unreadable, key=lambda each: (each.object.get("kind", ""), key_of(each.object)))
    return problem(causes.UNREADABLE, f"{first.object.get('kind', '')} {key_of(first.object).name} cannot be decoded: {first.problem}")


def ended_worker_problem(job: MPIJob, observed: Observed) -> Problem | None:
    """Return the problem of a launcher that waits for ever: one of its workers has ended, and is not replaced."""
    if job.is_suspended or job.launcher_creation_policy != c.WAIT_FOR_WORKERS_READY or not observed.is_launcher_suspended:
        return None
    workers = filter(None, map(observed.workers.get, job.worker_names))
    ended = [pod["metadata"].get("name", "") for pod in workers if pods.is_finished(pod) and not is_terminating(pod)]
    return problem(causes.WORKER_ENDED, f"worker {ended[0]} has ended, and the launcher waits until it is Ready") if ended else None
