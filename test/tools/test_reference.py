"""The generated reference pages leave nothing out."""

import re

import pytest

from fuzz.annotations import NAMES
from generators.api import api_page
from generators.conditions import conditions_page
from generators.labels import labels_page
from generators.mpijob_schema import mpijob_schema


def test_each_annotation_is_explained() -> None:
    assert set(re.findall(r"^\| `(mpiop\S+|scheduling\.volcano\.sh/queue-name)` \| On \w", labels_page(), re.MULTILINE)) == set(NAMES)


def test_events_are_those_that_the_operator_records() -> None:
    page = conditions_page()
    assert "| `Stalled` | True, `ResourceExists` |" in page
    assert page.count("| Warning `ErrResourceExists` |") == 1
    assert not re.search(r"\| `Finished` .* (Normal|Warning)", page)


@pytest.mark.parametrize("part", ["spec", "status"])
def test_each_field_has_its_row(part: str) -> None:
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", api_page(), re.MULTILINE | re.DOTALL))
    paths = list(own_fields(part, mpijob_schema()["properties"][part]))
    assert len(paths) > 10
    for path in paths:
        section, _, field = path.rpartition(".")
        assert re.search(rf"^\| (\*\*)?`{field}`", sections[section], re.MULTILINE), path


def own_fields(path: str, schema: dict[str, object]) -> list[str]:
    """Return the paths of all fields that are neither of a Pod template nor of what is deprecated."""
    properties = schema.get("properties")
    assert isinstance(properties, dict)
    found = []
    for name, field in properties.items():
        found.append(f"{path}.{name}")
        inner = field.get("items", field)
        if name != "template" and "properties" in inner and not field["description"].startswith("Deprecated"):
            found += own_fields(f"{path}.{name}" + "[]" * ("items" in field), inner)
    return found
