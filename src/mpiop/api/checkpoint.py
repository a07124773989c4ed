"""The annotations of an MPIJob by which its ranks are asked to save their work before they are ended."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from mpiop.api import constants as c
from mpiop.api.annotations import duration_seconds, one_of, path_of, read
from mpiop.api.fields import Fields, invalid

_DEFAULT_GRACE: Final = "60s"


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
    """Return what the annotations of an MPIJob say; None if they ask for nothing. What is wrong with one is added to their errors."""
    signal, grace = (annotations.values.get(name) for name in (c.ANNOTATION_CHECKPOINT_SIGNAL, c.ANNOTATION_CHECKPOINT_GRACE))
    if signal is None and grace is None:
        return None
    if signal is None:
        path = path_of(annotations, c.ANNOTATION_CHECKPOINT_GRACE)
        annotations.errors.append(invalid(path, grace, f"has no effect without {c.ANNOTATION_CHECKPOINT_SIGNAL}"))
        return None
    if annotations.values.get(c.ANNOTATION_SSH_MODE) != c.SSH_INJECTED:
        path = path_of(annotations, c.ANNOTATION_CHECKPOINT_SIGNAL)
        advice = f"needs {c.ANNOTATION_SSH_MODE} to be {c.SSH_INJECTED}: mpiop-agent sends the signal"
        annotations.errors.append(invalid(path, signal, advice))
        return None
    return Checkpoint(
        signal=read(annotations, c.ANNOTATION_CHECKPOINT_SIGNAL, c.CHECKPOINT_SIGNALS[0], partial(one_of, c.CHECKPOINT_SIGNALS)),
        grace_seconds=read(annotations, c.ANNOTATION_CHECKPOINT_GRACE, _DEFAULT_GRACE, duration_seconds),
    )
