"""Why a job is as it is: the cause in a paragraph, and the command that helps."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotations import MAX_RESTARTS
from mpiop.api.log_findings import finding
from mpiop.api.manager import other_manager
from mpiop.api.status_types import Attempt
from mpiop.client.errors import SHOWN_LINES
from mpiop.client.progress import progress, unseen
from mpiop.client.status import PENDING, TERMINATING, JobStatus, status_of

Object = Mapping[str, Any]
_ADVICE: Final[Mapping[str, str]] = {
    "OOMKilled": "A container used more memory than its limit. Raise the limit (kubectl mpi run --memory), or use more workers.",
    c.DEADLINE_EXCEEDED: "Raise spec.runPolicy.activeDeadlineSeconds (kubectl mpi run --time-limit).",
    c.EVICTED: "A node ran out of memory or disk. Request what the workers need (--memory), so that they get a node that has it.",
    c.REACHED_MAX_RESTARTS: f"Raise the annotation {MAX_RESTARTS.name}, once what takes its Pods away is mended.",
    c.LAUNCHER_JOB_NOT_FOUND: "Somebody deleted the launcher Job, or its TTL passed while no operator ran. Run the job again.",
}
_NO_LOG: Final = "Its log is empty, or its Pod is gone. With restartPolicy: Never for the launcher, Pod and log stay."
_VERBS: Final[Mapping[str, str]] = {c.CONDITION_DEGRADED: "runs, but not well", c.CONDITION_RESTARTING: "is restarted"}


def why(job: Object, pods: Sequence[Object], events: Sequence[Object], log: Sequence[str] = (), *, with_log: bool = True) -> str:
    """Return the explanation of a job.

    Args:
        job: As stored.
        pods: Of the job.
        events: About the job and its Pods.
        log: The end of its launcher's log.
        with_log: Whether the explanation ends with the log.
    """
    name, status = job["metadata"]["name"], status_of(job)
    if status.state == TERMINATING:
        return f"Job {name} is being deleted."
    if status.has_succeeded:
        unused = [row for row in status.conditions if row.type == c.CONDITION_WORKERS_UNUSED]  # True, or Unknown
        success = f"Job {name} succeeded, but used no worker." if status.condition(c.CONDITION_WORKERS_UNUSED) else f"Job {name} succeeded."
        return _text(success, status.message, *(row.message for row in unused))
    if status.is_finished:
        return _failed(name, status, log, with_log=with_log)
    if status.state == PENDING:
        return _text(f"Job {name} has been seen by no operator yet.", _unseen(job))
    if (problem := status.problem or status.condition(c.CONDITION_RESTARTING)) is not None:
        return _text(f"Job {name} {_VERBS.get(problem.type, 'waits')}: {problem.reason}.", problem.message)
    facts = f"Job {name}: {progress(job, pods)}."
    warning = None if status.condition(c.CONDITION_RUNNING) else newest_warning(events)
    return _text(facts, warning or "", *_attempts(status.attempts))


def _unseen(job: Object) -> str:
    """Return why no operator has seen a job, and what helps."""
    if (manager := other_manager(job)) is not None:
        return f"Another manager runs it: {manager}."
    text = unseen(job)
    return f"{text[:1].upper()}{text[1:]}"


def newest_warning(events: Sequence[Object]) -> str | None:
    """Return the newest Event that is a warning."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    newest = max(warnings, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "", default=None)
    if newest is None:
        return None
    about = newest["involvedObject"]
    return f"{newest['reason']} ({about['kind'].lower()} {about['name']}): {newest.get('message', '')}"


def _failed(name: str, status: JobStatus, log: Sequence[str], *, with_log: bool) -> str:
    failure = status.failure(name)
    message = str(failure).partition(f"{failure.reason}: ")[2].partition("\n")[0]
    verdict, reason = _verdict(status, log), f"{failure.reason}: {message}"
    knows_cause = bool(status.cause) and failure.reason.startswith(c.BACKOFF_LIMIT_EXCEEDED)
    is_explained = knows_cause or (bool(verdict) and message not in verdict)
    words = () if is_explained else re.findall(r"\w+", reason)
    advice = next((text for cause, text in _ADVICE.items() if cause in words), "")
    return _text(
        f"Job {name} failed: {verdict or reason}",
        reason if verdict else "",
        *_attempts(status.attempts),
        advice,
        *_end_of_log(status, log, with_log=with_log),
    )


def _end_of_log(status: JobStatus, log: Sequence[str], *, with_log: bool) -> Sequence[str]:
    """Return the end of the launcher's log. No command names the job, because `run --rm` deletes it next."""
    if not with_log:
        return ()
    if log:
        return ("The end of its log:", *log[-SHOWN_LINES:])
    return (_NO_LOG,) if status.attempts else ()


def _verdict(status: JobStatus, log: Sequence[str]) -> str:
    """Return why the job failed, in plain words; the operator may know it, or may read no log, which the user may; "" if nobody knows."""
    failed = status.condition(c.CONDITION_FAILED)
    is_of_launcher = failed is not None and failed.reason.startswith(c.BACKOFF_LIMIT_EXCEEDED)
    found = finding("\n".join(log)) if is_of_launcher and not status.cause else None
    return str(found) if found is not None else status.message.partition("\n")[0]


def _attempts(attempts: Sequence[Attempt]) -> list[str]:
    return [
        f"Attempt {attempt.number} failed: pod {attempt.pod} on node {attempt.node}, exit code {attempt.exit_code} ({attempt.reason})."
        for attempt in attempts
    ]


def _text(*sentences: str) -> str:
    return "\n".join(filter(None, sentences))
