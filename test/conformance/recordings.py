"""The recordings: what Kubeflow's operator made of each MPIJob, stage by stage (see golden/README.md)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"
Objects = Mapping[str, Sequence[Mapping[str, Any]]]
"""Objects by kind, in the recordings' form."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One moment of a case: how it was reached, and what there was when nothing changed any more."""

    name: str
    objects: Objects


@dataclass(frozen=True, slots=True)
class Case:
    """One MPIJob and its life."""

    name: str
    mpijob: Mapping[str, Any]
    stages: tuple[Stage, ...]


def recorded_cases() -> tuple[Case, ...]:
    """Return all recordings, by name."""
    return tuple(_case(path) for path in sorted(FOLDER.glob("*.json")))


def _case(path: Path) -> Case:
    content = json.loads(path.read_text(encoding="utf-8"))
    return Case(path.stem, content["input"], tuple(Stage(each["stage"], each["objects"]) for each in content["stages"]))
