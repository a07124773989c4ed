"""The annotations of an MPIJob, one row each: how its text is read, what it sets, and how it is documented.

The rows drive the parser, the check for edits, the revisions, the reference page and the random jobs of tests. To add an annotation, add
its row, the field that it sets (in `types`; in `restart` or `checkpoint`, which read their rows), and the code that uses the field.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from mpiop.api import constants as c
from mpiop.api.annotation_row import Hashed, JobAnnotation, Need, Parser
from mpiop.api.durations import parse_duration
from mpiop.api.fields import Fields, invalid, unsupported
from mpiop.kube.quantity import is_quantity, value_of

MOST_RESTARTS: Final = 100
"""The status remembers each restart of the budget."""
_MOST_EXIT_CODE: Final = 255
_MOST_DAYS: Final = 365

_Value = TypeVar("_Value")


def read(annotations: Fields, row: JobAnnotation[_Value]) -> _Value:
    """Return the value of an annotation, or its default if it is absent or refused; add an error if it is refused."""
    path = _path(annotations, row)
    if errors := _needed(annotations, row):
        annotations.errors += errors
        return row.parse(path, row.default)
    try:
        return row.parse(path, annotations.string(row.name, row.default))
    except ValueError as error:
        annotations.errors.append(str(error))
        return row.parse(path, row.default)


def fields_of(annotations: Fields) -> dict[str, Any]:
    """Return the fields of MPIJob that are set by one annotation each."""
    return {row.field: read(annotations, row) for row in JOB_ANNOTATIONS if row.field == row.attribute}


def is_given(annotations: Fields, attribute: str) -> bool:
    """Return whether any annotation of a dataclass is set and all have what they need; add an error for each that does not."""
    given = [row for row in JOB_ANNOTATIONS if row.attribute == attribute and annotations.values.get(row.name) is not None]
    errors = [error for row in given for error in _needed(annotations, row)]
    annotations.errors += errors
    return bool(given) and not errors


def _needed(annotations: Fields, row: JobAnnotation[Any]) -> list[str]:
    """Return an error if the annotation is set without what it needs."""
    value = annotations.values.get(row.name)
    if value is None or row.needs is None or row.needs.is_met(annotations.values):
        return []
    return [invalid(_path(annotations, row), value, row.needs.advice)]


def _path(annotations: Fields, row: JobAnnotation[Any]) -> str:
    return f"{annotations.path}[{row.name}]"


def are_edited(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether any annotation that is parsed differs."""
    return any(before.get(row.name) != now.get(row.name) for row in JOB_ANNOTATIONS)


def counted(job: object) -> list[tuple[Hashed, Any]]:
    """Return the values that count in the revisions of an MPIJob, and how."""
    return [(row.in_revision, getattr(job, row.attribute)) for row in JOB_ANNOTATIONS if row.in_revision is not None]


def _one_of(*choices: str) -> Parser[str]:
    def parse(path: str, text: str) -> str:
        if text in choices:
            return text
        raise ValueError(unsupported(path, text, choices))

    return parse


def _or_empty(parse: Parser[_Value], empty: _Value) -> Parser[_Value]:
    return lambda path, text: parse(path, text) if text else empty


def _is_true(path: str, text: str) -> bool:
    return _one_of("true", "false")(path, text) == "true"


def _quantity(path: str, text: str) -> str:
    if is_quantity(text) and value_of(text) > 0:
        return text
    raise ValueError(invalid(path, text, 'must be a quantity greater than 0, such as "8Gi"'))


def _restarts(path: str, text: str) -> int:
    if re.fullmatch("[0-9]{1,3}", text) and int(text) <= MOST_RESTARTS:
        return int(text)
    raise ValueError(invalid(path, text, f"must be a whole number from 0 to {MOST_RESTARTS}"))


def _restart_causes(path: str, text: str) -> tuple[str, frozenset[int]]:
    name, has_codes, codes = text.partition("=")
    if name == c.ON_EXIT_CODES and has_codes:
        found = [int(code) if re.fullmatch("[0-9]{1,3}", code) else 0 for code in codes.split(",")]
        if all(1 <= code <= _MOST_EXIT_CODE for code in found):
            return name, frozenset(found)
        raise ValueError(invalid(path, text, f"must be exit codes from 1 to {_MOST_EXIT_CODE}, such as ExitCodes=3,42"))
    if text in {c.ON_INFRASTRUCTURE, c.ON_ANY}:
        return text, frozenset()
    raise ValueError(unsupported(path, text, (c.ON_INFRASTRUCTURE, c.ON_ANY, f"{c.ON_EXIT_CODES}=<codes>")))


def _seconds(path: str, text: str) -> int:
    seconds = parse_duration(text)
    if seconds is not None and 0 < seconds <= _MOST_DAYS * 86400:
        return seconds
    raise ValueError(invalid(path, text, f"must be a duration with its unit, such as 90m, 24h or 7d, and at most {_MOST_DAYS}d"))


_ON_JOB: Final = "an MPIJob"
_BOOLEANS: Final = ("true", "false")

SLOTS: Final = JobAnnotation(
    "mpiop.kubeflow.org/slots",
    _ON_JOB,
    "`Auto` gives each worker one slot per GPU of its first container. Without GPUs, it gives one slot per whole CPU, and at least one.",
    field="slots_mode",
    parse=_or_empty(_one_of(c.SLOTS_AUTO), ""),
    examples=(c.SLOTS_AUTO,),
    in_revision=None,
)
SHM: Final = JobAnnotation(
    "mpiop.kubeflow.org/shm",
    _ON_JOB,
    "the size of `/dev/shm` in the launcher and the workers, such as `8Gi`, unless their template mounts something there.",
    field="shm",
    parse=_or_empty(_quantity, ""),
    examples=("8Gi", "64M", "1"),
    in_revision=Hashed(2, str),
)
SSH: Final = JobAnnotation(
    "mpiop.kubeflow.org/ssh",
    _ON_JOB,
    "whether ssh and sshd come from the image (`Image`) or from the operator (`Injected`). On a pod, it names a script.",
    field="ssh",
    parse=_or_empty(_one_of(*c.SSH_MODES), ""),
    examples=c.SSH_MODES,
    in_revision=Hashed(1, lambda ssh: ssh if ssh == c.SSH_INJECTED else ""),
)
VOLCANO_QUEUE: Final = JobAnnotation(
    "scheduling.volcano.sh/queue-name",
    _ON_JOB,
    "the queue of its PodGroup, if the spec does not name one.",
    field="volcano_queue",
    parse=lambda _, text: text,
    examples=("default", "team-a"),
    in_revision=None,
)
MAX_RESTARTS: Final = JobAnnotation(
    "mpiop.kubeflow.org/max-restarts",
    _ON_JOB,
    "the maximum number of restarts after the loss of a worker or the launcher (docs/fault-tolerance.md).",
    field="restart.max_restarts",
    parse=_restarts,
    default="0",
    examples=("3", "0", "100"),
    in_revision=Hashed(3, lambda policy: "mpiop.kubeflow.org/max-restarts" if policy.has_budget else ""),
)
_NEEDS_BUDGET: Final = Need(MAX_RESTARTS.name)
RESTART: Final = JobAnnotation(
    "mpiop.kubeflow.org/restart",
    _ON_JOB,
    "which workers a restart replaces: `Failed` workers (the default) or `All`.",
    field="restart.scope",
    parse=_one_of(*c.RESTART_SCOPES),
    default=c.RESTART_FAILED,
    examples=c.RESTART_SCOPES,
    in_revision=None,
    needs=_NEEDS_BUDGET,
)
RESTART_ON: Final = JobAnnotation(
    "mpiop.kubeflow.org/restart-on",
    _ON_JOB,
    "what causes a restart: only losses of `Infrastructure` (the default), also `Any` failure, or also `ExitCodes=3,42`.",
    field="restart.causes",
    parse=_restart_causes,
    default=c.ON_INFRASTRUCTURE,
    examples=(c.ON_INFRASTRUCTURE, c.ON_ANY, f"{c.ON_EXIT_CODES}=3,42"),
    in_revision=None,
    needs=_NEEDS_BUDGET,
)
RESTART_WINDOW: Final = JobAnnotation(
    "mpiop.kubeflow.org/restart-window",
    _ON_JOB,
    "the period to which `max-restarts` applies, for example 24h. The default is the whole life of the job.",
    field="restart.window_seconds",
    parse=lambda path, text: float(_seconds(path, text)) if text else None,
    examples=("24h", "1d12h"),
    in_revision=None,
    needs=_NEEDS_BUDGET,
)
AVOID_FAILED_NODES: Final = JobAnnotation(
    "mpiop.kubeflow.org/avoid-failed-nodes",
    _ON_JOB,
    '"true" keeps Pods that are created after a restart off nodes that were lost, or had too little memory or disk.',
    field="restart.avoids_failed_nodes",
    parse=_is_true,
    default="false",
    examples=_BOOLEANS,
    in_revision=None,
    needs=_NEEDS_BUDGET,
)
CHECKPOINT_SIGNAL: Final = JobAnnotation(
    "mpiop.kubeflow.org/checkpoint-signal",
    "an MPIJob with injected ssh",
    "the signal that asks its ranks to save their work before one of their Pods is deleted, such as `SIGUSR1`.",
    field="checkpoint.signal",
    parse=_one_of(*c.CHECKPOINT_SIGNALS),
    default=c.CHECKPOINT_SIGNALS[0],
    examples=c.CHECKPOINT_SIGNALS,
    in_revision=None,
    needs=Need(SSH.name, c.SSH_INJECTED, "mpiop-agent sends the signal"),
)
CHECKPOINT_GRACE: Final = JobAnnotation(
    "mpiop.kubeflow.org/checkpoint-grace",
    _ON_JOB,
    "how long ranks may keep running after this signal, for example 2m. The default is 60s.",
    field="checkpoint.grace_seconds",
    parse=_seconds,
    default="60s",
    examples=("60s", "1m30s"),
    in_revision=None,
    needs=Need(CHECKPOINT_SIGNAL.name),
)
TTL_DELETES_JOB: Final = JobAnnotation(
    "mpiop.kubeflow.org/ttl-deletes-job",
    _ON_JOB,
    '"true" makes `ttlSecondsAfterFinished` also delete the MPIJob, including its status.',
    field="ttl_deletes_job",
    parse=lambda _, text: text == "true",
    examples=_BOOLEANS,
    in_revision=None,
)
SSH_AGENT: Final = JobAnnotation(
    "mpiop.kubeflow.org/ssh-agent",
    _ON_JOB,
    '"false" makes `mpirun` call the image\'s ssh directly.',
    field="uses_ssh_agent",
    parse=lambda _, text: text.strip().lower() != "false",
    default="true",
    examples=_BOOLEANS,
    in_revision=None,
)
ALLOCATION: Final = JobAnnotation(
    "mpiop.kubeflow.org/allocation",
    _ON_JOB,
    '"true" if its launcher runs one `mpirun` for each step (`kubectl mpi alloc`). Such a job continues after a worker is lost.',
    field="is_allocation",
    parse=lambda _, text: text == "true",
    examples=_BOOLEANS,
    in_revision=None,
)

JOB_ANNOTATIONS: tuple[JobAnnotation[Any], ...] = (
    *(SLOTS, SHM, SSH, VOLCANO_QUEUE),
    *(MAX_RESTARTS, RESTART, RESTART_ON, RESTART_WINDOW, AVOID_FAILED_NODES),
    *(CHECKPOINT_SIGNAL, CHECKPOINT_GRACE),
    *(TTL_DELETES_JOB, SSH_AGENT, ALLOCATION),
)
"""Every annotation of an MPIJob, in the order of the reference page, and of the errors of those that set one field each."""
