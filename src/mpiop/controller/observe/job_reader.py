"""Parses and validates MPIJobs, each version once: a job is synced far more often than it changes."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from mpiop.api import constants as c
from mpiop.api.parse import ParseError, parse_mpijob, parse_next
from mpiop.api.types import MPIJob
from mpiop.api.validation import validate
from mpiop.kube.objects import Key, Object, annotations_of

_ANNOTATION: Final = re.compile(r"metadata\.annotations\[([^]]+)\]: ")
CAPACITY: Final = 256
"""Cached jobs: as many as a usual installation has active. Parsing one takes 0.2 ms."""


class InvalidJobError(Exception):
    """A job cannot be run as written; the message is shown to users."""

    def __init__(self, errors: Sequence[str]) -> None:
        """Say what is wrong, one line a field."""
        super().__init__(f"Found validation errors: {'; '.join(errors)}")


class Reader:
    """Remembers parsed jobs by object identity, since stored objects are never changed."""

    def __init__(self) -> None:
        """Know no job yet."""
        self._known: dict[Key, MPIJob] = {}

    def read(self, key: Key, raw: Object) -> MPIJob:
        """Return the job described by `raw`, which is stored under `key`.

        Raises:
            InvalidJobError: It cannot be run as written.
        """
        known = self._known.get(key)
        if known is not None and known.raw is raw:
            return known
        job = (known and parse_next(known, raw)) or _parsed(raw)
        if len(self._known) >= CAPACITY:
            self._known.clear()
        self._known[key] = job
        return job

    def forget(self, key: Key) -> None:
        """Forget a job that is gone."""
        self._known.pop(key, None)


def _parsed(raw: Object) -> MPIJob:
    job, errors = _read(raw)
    if job is not None and not errors:
        return job
    # A wrong annotation must not take a job that has begun out of the operator's hands.
    rest, further = raw, errors
    while wrong := _annotations_in(further) & annotations_of(rest).keys():
        rest = _without_annotations(rest, wrong)
        job, further = _read(rest)
    if job is None or further or not job.status.is_true(c.CONDITION_CREATED) or job.is_resuming:
        raise InvalidJobError(errors)
    return replace(job, raw=raw, ignored=errors)


def _read(raw: Object) -> tuple[MPIJob | None, tuple[str, ...]]:
    """Return the job, unless it cannot be understood, and what is wrong with it."""
    try:
        job = parse_mpijob(raw)
    except ParseError as error:
        return None, error.errors
    return job, validate(job)


def _annotations_in(errors: Sequence[str]) -> set[str]:
    """Return the names of the annotations that are wrong."""
    return {found[1] for line in errors if (found := _ANNOTATION.match(line))}


def _without_annotations(raw: Object, wrong: Collection[str]) -> Object:
    annotations = {name: value for name, value in annotations_of(raw).items() if name not in wrong}
    return {**raw, "metadata": {**raw["metadata"], "annotations": annotations}}
