"""Why a launcher failed, according to its pods.

The Job controller deletes a launcher pod that has used up its `backoffLimit` before it marks the Job as failed. Therefore the failure of
a pod is stored as soon as it is seen: `lastFailure` in the status of the MPIJob.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mpiop.api.types import Failure
from mpiop.controller.objects.ssh_agent import MARK
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.status.exit_codes import in_words
from mpiop.kube.objects import Object, is_terminating
from mpiop.kube.text import truncated

BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"


def failure(outcome: Mapping[str, Any], last: Failure | None, default_message: str) -> tuple[str, str]:
    """Return reason and message of a failed job from the launcher Job's Failed condition and the `last` failure of its pods.

    `BackoffLimitExceeded` does not name the cause, so that of the pod is added. The message has at most 1024 bytes.
    """
    reason: str = outcome.get("reason") or "MPIJobFailed"
    message: str = outcome.get("message") or default_message
    if reason == BACKOFF_LIMIT_EXCEEDED and last is not None:
        reason, message = f"{reason}/{last.reason}", f"{message}: {last.message}"
    return reason, truncated(message)


def last_failure(observed: Observed) -> Failure | None:
    """Return the failure of the newest launcher pod that failed and still exists."""
    return next((found for pod in reversed(observed.launcher_pods) if (found := _failure_of(pod))), None)


def _failure_of(pod: Object) -> Failure | None:
    """Return the failure of a pod, or of a container in a pod that did not fail."""
    status = pod.get("status", {})
    ends = sorted(_ends(pod), key=lambda end: (end[0], end[2].get("finishedAt", "")))
    if not ends and (pods.phase(pod) != "Failed" or is_terminating(pod)):
        return None
    _, name, ended = ends[0] if ends else (False, "", dict[str, Any]())
    words = [f"pod {pod['metadata'].get('name', '')}"]
    if node := pod.get("spec", {}).get("nodeName"):
        words.append(f"on node {node}")
    words.append(f"container {name} {in_words(ended.get('exitCode'))}" if ends else "failed")
    details = [detail for detail in (_own_message(ended), status.get("message")) if detail]
    reason = status.get("reason") or ended.get("reason") or "Error"
    return Failure(reason, truncated(": ".join([" ".join(words), *details])))


def _own_message(ended: Mapping[str, Any]) -> str:
    """Return the container's termination message without our mark."""
    message: str = ended.get("message") or ""
    return message.removeprefix(MARK).strip()


def _ends(pod: Object) -> Iterator[tuple[bool, str, Mapping[str, Any]]]:
    """Yield (whether it was restarted, container, terminated state) of each container that failed and did not succeed later.

    The cause is the container that ended first and was not restarted; others may have failed because of it. Exit codes of a pod that is
    being deleted mean nothing.
    """
    for status in pods.container_statuses(pod):
        now, before = pods.terminated(status), pods.last_terminated(status)
        if now.get("exitCode") and not is_terminating(pod):
            yield False, status.get("name", ""), now
        elif before.get("exitCode") and now.get("exitCode") != 0:
            yield True, status.get("name", ""), before
