"""What the status reports of failures of the launcher.

The Job controller deletes a launcher pod that has used up its `backoffLimit` before it marks the Job as failed. Therefore the failure of
a pod is stored as soon as it is seen: `lastFailure` in the status of the MPIJob.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.status_types import Attempt, Failure
from mpiop.api.types import MPIJob
from mpiop.controller.observe import pods
from mpiop.controller.observe.launcher_failures import FailedContainer, failed_container_of, last_failure, pods_of_this_run
from mpiop.controller.observe.observed import Observed
from mpiop.kube.text import MAX_MESSAGE_BYTES, truncated

ATTEMPTS: Final = 3


def failure(outcome: Mapping[str, Any], last: Failure | None, default_message: str) -> tuple[str, str]:
    """Return reason and message of a failed job from the launcher Job's Failed condition and the `last` failure of its pods.

    `BackoffLimitExceeded` does not name the cause, so that of the pod is added, then the verdict and the end of the log. The reason remains
    the pod's own, because programs compare it. The message has at most 1024 bytes.
    """
    reason: str = outcome.get("reason") or "MPIJobFailed"
    message: str = outcome.get("message") or default_message
    if reason == c.BACKOFF_LIMIT_EXCEEDED and last is not None:
        reason, message = f"{reason}/{last.reason}", f"{message}: {last.message}"
    if last is not None and last.cause:
        message = f"{truncated(message, MAX_MESSAGE_BYTES // 3)}. Cause: {last.cause}"
    if last is None or not last.log:
        return reason, truncated(message)
    message = truncated(message, MAX_MESSAGE_BYTES * 2 // 3)
    room = MAX_MESSAGE_BYTES - len(message.encode()) - 1
    return reason, f"{message}\n{last.log.encode()[-room:].decode(errors='ignore')}"


def new_failure(job: MPIJob, observed: Observed) -> Failure | None:
    """Return the last failure if the status of the job does not have it; another attempt that ended in the same way is another failure."""
    found = last_failure(job, observed)
    is_known = found is None or (found.is_same(job.status.last_failure) and attempts(job, observed) == job.status.attempts)
    return None if is_known else found


def attempts(job: MPIJob, observed: Observed) -> tuple[Attempt, ...]:
    """Return the last failed attempts of the launcher in this run: those that are known, and those of its pods that ended later."""
    known = job.status.attempts
    found = map(failed_container_of, pods_of_this_run(job, observed))
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
