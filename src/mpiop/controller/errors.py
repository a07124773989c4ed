"""What can go wrong in a sync, besides requests that fail (`mpiop.kube.errors`).

Exception
├── WriteError                   a child cannot be written now; the sync continues with whatever does not depend on it
│   ├── GangApiMissingError      the API server does not serve the objects of gang scheduling
│   ├── PredecessorError         a child of a deleted job of the same name still exists
│   ├── ResourceExistsError      an object that is not ours has the name of a child
│   ├── SecretLostError          the SSH Secret is gone, and Pods run with its key
│   └── DampedWriteError         the write waits, because somebody undoes it each time
└── InvalidJobError              the job cannot be run as written
"""

from collections.abc import Sequence
from typing import Final

from mpiop.kube.objects import Key
from mpiop.kube.resources import Resource
from mpiop.kube.text import truncated

MOST_ERRORS: Final = 20
MOST_ERROR_BYTES: Final = 8192
_NAMED: Final = 3


class InvalidJobError(Exception):
    """A job cannot be run as written; the message is shown to users."""

    def __init__(self, errors: Sequence[str]) -> None:
        """List what is wrong, one error for each field; only the first of thousands, because the status keeps this message."""
        more = f"; and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
        super().__init__(truncated(f"Found validation errors: {'; '.join(errors[:MOST_ERRORS])}", MOST_ERROR_BYTES) + more)


class WriteError(Exception):
    """A child cannot be written now, and no failed request is the reason."""


class PredecessorError(WriteError):
    """A child of a deleted job of the same name still exists; the garbage collector will remove it."""

    def __init__(self, resource: Resource, key: Key) -> None:
        """Name the object that is waited for."""
        super().__init__(f"{resource.kind} {key} of a former owner is still being deleted")


class ResourceExistsError(WriteError):
    """An object with the name of a child exists and does not belong to the job."""

    def __init__(self, kind: str, name: str) -> None:
        """Name the object that exists already."""
        super().__init__(f'Resource "{name}" of Kind "{kind}" already exists and is not managed by MPIJob')


class SecretLostError(WriteError):
    """The SSH Secret is gone while pods run with its key; new pods with another key could not reach them."""

    def __init__(self, name: str, holders: Sequence[str]) -> None:
        """Name the Secret, and the pods that run with its key."""
        held = ", ".join(holders[:_NAMED]) + (f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else "")
        super().__init__(f"Secret {name} is gone, and new pods cannot start without it; {held} still run with its key")


class DampedWriteError(WriteError):
    """A write was not sent yet, because somebody undoes it each time."""

    def __init__(self, resource: Resource, key: Key, wait_seconds: float) -> None:
        """Name the object, and the time until it may be written again."""
        super().__init__(f"{resource.kind} {key} is changed back each time; it is written again in {wait_seconds:.1f} s")


class GangApiMissingError(WriteError):
    """Gang scheduling is on, but the API server does not serve its objects; the message contains what to do."""

    def __init__(self, kind: str, message: str) -> None:
        """Take the kind of the objects, and what to do."""
        super().__init__(message)
        self.kind = kind
