"""The table of annotations: every row is parsed, refused when invalid, noticed when edited, and documented."""

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
from mpiop.api.parse import ParseError, parse_mpijob, parse_next
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


def annotated(annotations: dict[str, str]) -> Object:
    job = mpijob()
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}


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
        *(("shm", size, f'Invalid value: "{size}": {NO_SIZE}') for size in ("8 GB", "8gi", "0", "-8Gi")),
    ],
)
def test_what_is_invalid_is_refused(name: str, text: str, error: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mpijob(annotated({f"mpiop.kubeflow.org/{name}": text}))
    assert caught.value.errors == (f"metadata.annotations[mpiop.kubeflow.org/{name}]: {error}",)


@pytest.mark.parametrize("size", ["8Gi", "0.5Gi", "1e9", "67108864", ""])
def test_sizes_of_shared_memory(size: str) -> None:
    assert parse_mpijob(annotated({rows.SHM.name: size})).shm == size


def test_what_is_empty_counts_as_absent() -> None:
    job = parse_mpijob(annotated({rows.SSH.name: "", rows.SLOTS.name: ""}))
    assert (job.ssh, job.slots_per_worker) == ("", 1)


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
