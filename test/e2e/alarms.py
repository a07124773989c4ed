"""What the operator reported about a job, from its creation to its end, that sounds like trouble."""

from typing import Final

from e2e.jobs import has_ended, is_true, warnings_about
from e2e.kubectl import Kubectl, Obj
from mpiop.kube.resources import MPIJOBS

ALARMS: Final = ("Failed", "Degraded", "Stalled", "WorkersUnused", "Warnings", "UpdatePending")


def alarms_until_the_end(here: Kubectl, name: str, *, timeout_seconds: float) -> list[str]:
    """Watch a job until it has ended, and return each alarm once, though it may have been withdrawn."""
    seen: dict[str, None] = {}

    def look(job: Obj) -> bool:
        seen.update(dict.fromkeys(f"{type_} was True" for type_ in ALARMS if is_true(job, type_)))
        return has_ended(job)

    ended = here.until_one(MPIJOBS, name, look, timeout_seconds=timeout_seconds)
    failure = ended["status"].get("lastFailure")
    events = [f"event {event['reason']}: {event['message']}" for event in warnings_about(here, name)]
    return [*seen, *([f"lastFailure: {failure}"] if failure else []), *events]
