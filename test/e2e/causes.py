"""How soon a job shows the cause for which it waits."""

from e2e.kubectl import Kubectl, Obj
from mpiop.clock import parse_time
from mpiop.kube.resources import EVENTS, MPIJOBS, PODS

SHOWN_SECONDS = 10
"""At most, between the first sign of a cause in the cluster and the job that shows it; Kubernetes writes whole seconds."""
_DISRUPTIONS = {"Preempted", "TaintManagerEviction"}
"""Events that report why a Pod is deleted; they are no warnings."""


def check_shown_soon(job: str, reason: str, here: Kubectl, *, since: str = "") -> None:
    """Fail if more than `SHOWN_SECONDS` passed from the first sign of a cause to the job's own event.

    A sign is a warning about a Pod or the launcher Job, the deletion of a Pod by the cluster, or the end of a container. A refusal has
    none: it counts from the job's creation. Of what somebody did, `since` is the time.
    """
    children = (f"{job}-worker-", f"{job}-launcher")

    def of_job(event: Obj) -> bool:
        return bool(event["involvedObject"]["name"] == job)

    # An object in the way has the reference's reason.
    def is_shown(event: Obj) -> bool:
        return of_job(event) and event["reason"] in {reason, f"Err{reason}"}

    events = here.until(EVENTS, lambda events: any(map(is_shown, events)))
    shown = next(filter(is_shown, events))
    others = {event["reason"] for event in events if of_job(event)} - {reason}  # what was in the way before, such as a slow volume
    warnings = [event for event in events if event["type"] == "Warning" and event["reason"] not in others]
    warnings += [event for event in events if event["reason"] in _DISRUPTIONS]
    pods = [pod for pod in here.read_all(PODS) if pod["metadata"]["name"].startswith(children)]
    rows = [row for pod in pods for field in ("initContainerStatuses", "containerStatuses") for row in pod["status"].get(field, ())]
    ends = [end["finishedAt"] for row in rows for state in ("state", "lastState") if (end := row[state].get("terminated"))]
    signs = [event["firstTimestamp"] or event["eventTime"] for event in warnings if event["involvedObject"]["name"].startswith(children)]
    created = here.read(MPIJOBS, job)["metadata"]["creationTimestamp"]
    sign = since or min([*signs, *ends], default=created)
    seconds = (parse_time(shown["firstTimestamp"]) - parse_time(sign)).total_seconds()
    assert seconds <= SHOWN_SECONDS, f"{job} shows {reason} {seconds} s after its first sign at {sign}"
