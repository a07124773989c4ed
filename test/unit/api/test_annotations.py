"""The annotations: every row of their table is parsed, refused when invalid, noticed when edited, and documented."""

import re
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import mpiop
from fakes.world import mpijob
from generators.labels import labels_page
from mpiop.api import annotations as rows
from mpiop.api import parse
from mpiop.api.annotation_row import Hashed, JobAnnotation, Need
from mpiop.api.checkpoint import Checkpoint
from mpiop.api.parse import ParseError, parse_mpijob, parse_next
from mpiop.api.restart import NO_BUDGET, RestartPolicy
from mpiop.api.spec_fields import SPEC_FIELDS
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects.revision import start_revision
from mpiop.kube.objects import Object

ROWS = {row.name: row for row in rows.JOB_ANNOTATIONS}
OF_TOOLS = {"mpiop.kubeflow.org/output"}
"""Set by the tools for users, and read by themselves."""
IN_SOURCE = re.compile(r"\bmpiop\.kubeflow\.org/[a-z-]+|\bscheduling\.volcano\.sh/[a-z-]+")
INVALID = "\x00"


def annotated(annotations: dict[str, Any]) -> Object:
    job = mpijob()
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}


def with_ours(annotations: dict[str, Any]) -> Object:
    """Return a job with annotations of mpiop's own, which are written without their prefix."""
    return annotated({f"mpiop.kubeflow.org/{name}": value for name, value in annotations.items()})


def needed(row: JobAnnotation[Any]) -> dict[str, str]:
    """Return what the annotation is refused without."""
    if row.needs is None:
        return {}
    other = ROWS[row.needs.name]
    return {**needed(other), other.name: row.needs.value or other.examples[0]}


def set_by(row: JobAnnotation[Any], annotations: dict[str, str]) -> Any:
    return reduce(lambda value, name: getattr(value, name, None), row.field.split("."), parse_mpijob(annotated(annotations)))


@pytest.mark.parametrize("row", rows.JOB_ANNOTATIONS, ids=lambda row: row.name)
def test_each_row_is_read_into_its_field(row: JobAnnotation[Any]) -> None:
    without = set_by(row, needed(row))
    assert any(set_by(row, {**needed(row), row.name: example}) != without for example in row.examples), f"{row.field} is not set"


@pytest.mark.parametrize("row", rows.JOB_ANNOTATIONS, ids=lambda row: row.name)
def test_an_edit_of_each_is_noticed(row: JobAnnotation[Any]) -> None:
    raw = annotated(needed(row))
    job = parse_mpijob(raw)
    assert parse_next(job, raw) is not None
    assert parse_next(job, {**annotated({**needed(row), row.name: row.examples[0]}), "spec": raw["spec"]}) is None


def test_places_in_revisions_differ() -> None:
    fields = (row for of_object in SPEC_FIELDS.values() for row in of_object)
    places = [row.in_revision.place for row in (*rows.JOB_ANNOTATIONS, *fields) if row.in_revision is not None]
    assert len(places) == len(set(places))


def test_every_annotation_that_the_source_names_has_a_row() -> None:
    known = {row.name for row in (*rows.JOB_ANNOTATIONS, *names.ANNOTATIONS)} | OF_TOOLS
    for path in Path(mpiop.__file__).parent.rglob("*.py"):
        assert set(IN_SOURCE.findall(path.read_text(encoding="utf-8"))) <= known, f"{path} names an annotation without a row"
    defined = {row for row in vars(rows).values() if isinstance(row, JobAnnotation)}
    assert defined == set(rows.JOB_ANNOTATIONS)


NO_SIZE = 'must be a quantity greater than 0, such as "8Gi"'


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("ssh", "injected", 'Unsupported value: "injected": supported values: "Image", "Injected"'),
        ("slots", "4", 'Unsupported value: "4": supported values: "Auto"'),
        *(("shm", size, f'Invalid value: "{size}": {NO_SIZE}') for size in ("8 GB", "8gi", "0", "-8Gi")),
    ],
)
def test_what_is_invalid_is_refused(name: str, text: str, error: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mpijob(with_ours({name: text}))
    assert caught.value.errors == (f"metadata.annotations[mpiop.kubeflow.org/{name}]: {error}",)


BUDGET = {"max-restarts": "1"}
INJECTED = {"ssh": "Injected"}
SIGNAL = INJECTED | {"checkpoint-signal": "SIGUSR1"}


@pytest.mark.parametrize(
    ("annotations", "field", "value"),
    [
        *(({"shm": size}, "shm", size) for size in ("8Gi", "0.5Gi", "1e9", "67108864", "")),
        ({"ssh": ""}, "ssh", ""),
        ({"slots": ""}, "slots_per_worker", 1),
        ({}, "restart", NO_BUDGET),
        ({"ssh": "Image"}, "restart", NO_BUDGET),
        ({"max-restarts": "0"}, "restart", RestartPolicy(0)),
        ({"max-restarts": "3", "restart": "All", "restart-on": "Any"}, "restart", RestartPolicy(3, "All", "Any")),
        (BUDGET | {"restart-on": "ExitCodes=3,42"}, "restart", RestartPolicy(1, causes="ExitCodes", exit_codes=frozenset({3, 42}))),
        (BUDGET | {"restart-window": "1d12h"}, "restart", RestartPolicy(1, window_seconds=36 * 3600.0)),
        ({"max-restarts": "100", "avoid-failed-nodes": "true"}, "restart", RestartPolicy(100, avoids_failed_nodes=True)),
        (INJECTED, "checkpoint", None),
        (SIGNAL, "checkpoint", Checkpoint("SIGUSR1", 60)),
        (SIGNAL | {"checkpoint-signal": "SIGUSR2", "checkpoint-grace": "1m30s"}, "checkpoint", Checkpoint("SIGUSR2", 90)),
        (SIGNAL | {"checkpoint-grace": "365d"}, "checkpoint", Checkpoint("SIGUSR1", 31_536_000)),
    ],
)
def test_what_annotations_ask_for(annotations: dict[str, str], field: str, value: object) -> None:
    assert getattr(parse_mpijob(with_ours(annotations)), field) == value


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"max-restarts": "many"}, 'max-restarts]: Invalid value: "many": must be a whole number from 0 to 100'),
        ({"max-restarts": "101"}, "max-restarts]: Invalid value"),
        ({"max-restarts": "9" * 5000}, "max-restarts]: Invalid value"),
        ({"max-restarts": 3}, "max-restarts: Invalid value: 3: must be a string"),
        (BUDGET | {"restart": "Some"}, 'restart]: Unsupported value: "Some": supported values: "Failed", "All"'),
        (BUDGET | {"restart-on": "Errors"}, 'restart-on]: Unsupported value: "Errors": supported values: "Infrastructure", "Any", "Exi'),
        (BUDGET | {"restart-on": "ExitCodes"}, 'restart-on]: Unsupported value: "ExitCodes"'),
        (BUDGET | {"restart-on": "ExitCodes=0"}, 'restart-on]: Invalid value: "ExitCodes=0": must be exit codes from 1 to 255'),
        (BUDGET | {"restart-on": "ExitCodes=3,"}, 'restart-on]: Invalid value: "ExitCodes=3,": must be exit codes'),
        (BUDGET | {"restart-on": "ExitCodes=256"}, "restart-on]: Invalid value"),
        (BUDGET | {"restart-window": "24"}, 'restart-window]: Invalid value: "24": must be a duration with its unit'),
        (BUDGET | {"restart-window": "0s"}, "restart-window]: Invalid value"),
        (BUDGET | {"avoid-failed-nodes": "yes"}, 'avoid-failed-nodes]: Unsupported value: "yes"'),
        ({"restart": "All"}, 'restart]: Invalid value: "All": has no effect without mpiop.kubeflow.org/max-restarts'),
        (
            SIGNAL | {"checkpoint-signal": "SIGKILL"},
            'checkpoint-signal]: Unsupported value: "SIGKILL": supported values: "SIGUSR1", "SIGUSR2"',
        ),
        (SIGNAL | {"checkpoint-signal": 10}, "checkpoint-signal: Invalid value: 10: must be a string"),
        (SIGNAL | {"checkpoint-grace": "60"}, 'checkpoint-grace]: Invalid value: "60": must be a duration'),
        (
            SIGNAL | {"checkpoint-grace": "200000d"},
            'checkpoint-grace]: Invalid value: "200000d": must be a duration with its unit, such as 90m, 24h or 7d, and at most 365d',
        ),
        (
            INJECTED | {"checkpoint-grace": "60s"},
            'checkpoint-grace]: Invalid value: "60s": has no effect without mpiop.kubeflow.org/checkpoint-signal',
        ),
        (
            {"checkpoint-signal": "SIGUSR1"},
            'checkpoint-signal]: Invalid value: "SIGUSR1": needs mpiop.kubeflow.org/ssh to be Injected: mpiop-agent sends the signal',
        ),
    ],
)
def test_what_is_wrong_with_them_is_said(annotations: dict[str, Any], words: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mpijob(with_ours(annotations))
    [error] = caught.value.errors
    assert words in error


@dataclass(frozen=True, slots=True)
class Tinted(MPIJob):
    """A job with a field for an annotation that does not exist."""

    tint: str = ""


def _tint(path: str, text: str) -> str:
    if text in {"", "red", "blue"}:
        return text
    raise ValueError(f"{path}: no such tint")


TINT = JobAnnotation(
    "mpiop.kubeflow.org/tint",
    "an MPIJob",
    "the tint of its Pods.",
    field="tint",
    parse=_tint,
    examples=("red", "blue"),
    in_revision=Hashed(1000, str),
    needs=Need(rows.SHM.name),
)


def test_a_new_row_is_all_that_a_new_annotation_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    page, plain = labels_page(), start_revision(parse_mpijob(annotated({})))
    monkeypatch.setattr(rows, "JOB_ANNOTATIONS", (*rows.JOB_ANNOTATIONS, TINT))
    monkeypatch.setattr(parse, "MPIJob", Tinted)
    raw = annotated({TINT.name: "red", rows.SHM.name: "1Gi"})
    red = parse_mpijob(raw)
    assert isinstance(red, Tinted)
    assert red.tint == "red"
    assert parse_next(red, {**annotated({TINT.name: "blue", rows.SHM.name: "1Gi"}), "spec": raw["spec"]}) is None
    assert start_revision(red) != start_revision(replace(red, tint="blue"))
    assert start_revision(parse_mpijob(annotated({}))) == plain
    with pytest.raises(ParseError, match=r"tint\]: Invalid value: \"red\": has no effect without mpiop"):
        parse_mpijob(annotated({TINT.name: "red"}))
    with pytest.raises(ParseError, match=r"tint\]: no such tint"):
        parse_mpijob(annotated({TINT.name: INVALID, rows.SHM.name: "1Gi"}))
    assert set(labels_page().splitlines()) - set(page.splitlines()) == {
        "| `mpiop.kubeflow.org/tint` | On an MPIJob: the tint of its Pods. | `red`, `blue` |"
    }
