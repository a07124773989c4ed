"""Parses and validates MPIJobs, each version once: a job is synced far more often than it changes."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from mpiop.api import constants as c
from mpiop.api.parse import ParseError, parse_mpijob, parse_next
from mpiop.api.types import MPIJob
from mpiop.api.validation import validate
from mpiop.controller.errors import InvalidJobError
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.stored_specs import stored_spec
from mpiop.kube.items import NOT_JSON
from mpiop.kube.objects import Key, Object, annotations_of

_ANNOTATION: Final = re.compile(r"metadata\.annotations\[([^]]+)\]: ")
CAPACITY: Final = 256
"""Cached jobs: as many as a usual installation has active. Parsing one takes 0.2 ms."""

CAPACITY_BYTES: Final = 2 * 2**20
"""Of the specs of all cached jobs, which take some twenty times as much as objects. Large jobs are never cached."""


class Reader:
    """Remembers parsed jobs by object identity, since stored objects are never changed."""

    def __init__(self, memory: JobMemory) -> None:
        """Keep the jobs in `memory`."""
        self._known: dict[Key, tuple[Object, MPIJob]] = memory.table()

    def known(self, key: Key, stored: Object) -> MPIJob | None:
        """Return the job `stored` under `key` if it was read before, and has changed in nothing but its status since."""
        if key not in self._known:
            return None
        before, job = self._known[key]
        if before is stored:
            return job
        if stored_spec(before) is not stored_spec(stored):
            return None
        later = parse_next(job, {**stored, "spec": job.raw.get("spec", {})})
        if later is not None:
            self._known[key] = stored, later
        return later

    def read(self, key: Key, stored: Object, spec: bytes) -> MPIJob:
        """Return the job `stored` under `key`, whose spec is `spec` as JSON.

        Raises:
            InvalidJobError: It cannot be run as written.
        """
        try:
            job = _parsed({**stored, "spec": msgspec.json.decode(spec)})
        except NOT_JSON as error:
            raise InvalidJobError([f"spec: Invalid value: {error}"]) from error
        if stored_spec(stored).is_large:
            return replace(job, is_large=True)
        self._remember(key, stored, job)
        return job

    def _remember(self, key: Key, stored: Object, job: MPIJob) -> None:
        self._known.pop(key, None)
        used_bytes = sum(stored_spec(known).size for known, _ in self._known.values())
        if len(self._known) >= CAPACITY or used_bytes + stored_spec(stored).size > CAPACITY_BYTES:
            self._known.clear()
        self._known[key] = stored, job


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
