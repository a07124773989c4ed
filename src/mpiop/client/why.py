"""Why a job is as it is: the cause in a paragraph, and the command that helps."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mpiop.client.progress import progress
from mpiop.client.status import Attempt, JobStatus, status_of

Object = Mapping[str, Any]

_ADVICE: Final[Mapping[str, str]] = {
    "OOMKilled": "A container used more memory than its limit. Raise the limit (kubectl mpi run --memory), or use more workers.",
    "DeadlineExceeded": "Raise spec.runPolicy.activeDeadlineSeconds (kubectl mpi run --time-limit).",
    "MPIJobEvicted": "A node ran out of memory or disk. Request what the workers need (--memory), so that they get a node that has it.",
    "SIGBUS": "Often /dev/shm is too small: it has 64 MiB where a Pod says nothing else. Give it more, by the annotation "
    "mpiop.kubeflow.org/shm: 2Gi of the MPIJob (kubectl mpi run --shm 2Gi).",
    "ReachedMaxRestarts": "Raise the annotation mpiop.kubeflow.org/max-restarts, once what takes its Pods away is mended.",
    "LauncherJobNotFound": "Somebody deleted the launcher Job, or its TTL passed while no operator ran. Run the job again.",
}
_VERBS: Final[Mapping[str, str]] = {"Degraded": "runs, but not well", "Restarting": "is restarted"}


def why(job: Object, pods: Sequence[Object], events: Sequence[Object], log: Sequence[str] = ()) -> str:
    """Return the explanation of a job from its status, its Pods, the Events about it and its Pods, and the end of its log."""
    name, status = job["metadata"]["name"], status_of(job)
    if status.has_succeeded:
        unused = status.condition("WorkersUnused")
        return _text(f"Job {name} succeeded.", unused.message if unused else "")
    if status.is_finished:
        return _failed(name, status, log)
    if status.state == "Pending":
        return _text(f"Job {name} has been seen by no operator yet.", "Is one installed, and does it lead? kubectl mpi doctor")
    if (problem := status.problem or status.condition("Restarting")) is not None:
        return _text(f"Job {name} {_VERBS.get(problem.type, 'waits')}: {problem.reason}.", problem.message)
    facts = f"Job {name}: {progress(job, pods)}."
    warning = None if status.condition("Running") else newest_warning(events)
    return _text(facts, warning or "", *_tries(status.attempts))


def newest_warning(events: Sequence[Object]) -> str | None:
    """Return the newest Event that is a warning."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    newest = max(warnings, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "", default=None)
    if newest is None:
        return None
    about = newest["involvedObject"]
    return f"{newest['reason']} ({about['kind'].lower()} {about['name']}): {newest.get('message', '')}"


def _failed(name: str, status: JobStatus, log: Sequence[str]) -> str:
    failure = status.failure(name)
    words = f"Job {name} failed: {failure.reason}."
    message = str(failure).partition(f"{failure.reason}: ")[2].partition("\n")[0]
    advice = next((text for cause, text in _ADVICE.items() if cause in failure.reason or cause in message), "")
    more = ("The end of its log:", *log) if log else (f"Its log, if the Pod still exists: kubectl mpi logs {name}",)
    return _text(words, message, *_tries(status.attempts), advice, *more)


def _tries(attempts: Sequence[Attempt]) -> list[str]:
    return [
        f"Try {attempt.number} failed: pod {attempt.pod} on node {attempt.node}, exit code {attempt.exit_code} ({attempt.reason})."
        for attempt in attempts
    ]


def _text(*sentences: str) -> str:
    return "\n".join(filter(None, sentences))
