"""Understanding MPIJobs: each state of a job once, for a job is looked at far more often than it is changed."""

from collections.abc import Sequence
from typing import Final

from mpiop.api.parse import ParseError, parse_mpijob, parse_next
from mpiop.api.types import MPIJob
from mpiop.api.validation import validate
from mpiop.kube.objects import Key, Object

CAPACITY: Final = 256
"""Jobs remembered; those that are under way, in an installation of a usual size. Forgetting one costs a fifth of a millisecond."""


class InvalidJobError(Exception):
    """A job cannot be run as it is written; the message is what users are told."""

    def __init__(self, errors: Sequence[str]) -> None:
        """Say what is wrong, one line a field."""
        super().__init__(f"Found validation errors: {'; '.join(errors)}")


class Reader:
    """Parses and validates jobs, and remembers the last ones: stored objects are never changed, so the same object is the same job."""

    def __init__(self) -> None:
        """Know no job yet."""
        self._known: dict[Key, MPIJob] = {}

    def read(self, key: Key, raw: Object) -> MPIJob:
        """Return the job that `raw`, which is stored under `key`, describes.

        Raises:
            InvalidJobError: It cannot be run as it is written.
        """
        known = self._known.get(key)
        if known is not None and known.raw is raw:
            return known
        job = (known and parse_next(known, raw)) or _understood(raw)
        if len(self._known) >= CAPACITY:
            self._known.clear()
        self._known[key] = job
        return job

    def forget(self, key: Key) -> None:
        """Drop what is known of a job that is gone."""
        self._known.pop(key, None)


def _understood(raw: Object) -> MPIJob:
    try:
        job = parse_mpijob(raw)
    except ParseError as error:
        raise InvalidJobError(error.errors) from error
    if errors := validate(job):
        raise InvalidJobError(errors)
    return job
