"""How the ranks of a job are asked to save their work before they are ended, which its annotations set."""

from dataclasses import dataclass

from mpiop.api import annotations as rows
from mpiop.api.fields import Fields


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How ranks are asked to save their work before they are ended.

    Attributes:
        signal: Its name, such as SIGUSR1.
        grace_seconds: How long they may run on after it.
    """

    signal: str
    grace_seconds: int


def checkpoint_of(annotations: Fields) -> Checkpoint | None:
    """Return what the annotations of an MPIJob ask for; None if they ask for nothing. Add an error for each that is invalid."""
    if not rows.is_given(annotations, "checkpoint"):
        return None
    return Checkpoint(
        signal=rows.read(annotations, rows.CHECKPOINT_SIGNAL),
        grace_seconds=rows.read(annotations, rows.CHECKPOINT_GRACE),
    )
