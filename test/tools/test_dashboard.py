"""The Grafana dashboard, and its picture from Prometheus' answers. That each query has one is test/e2e/test_monitoring.py's to show."""

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from generators.dashboard import dashboard
from generators.dashboard_picture import lines_of, picture
from mpiop.metrics import Metrics

PANELS: list[dict[str, Any]] = json.loads(dashboard())["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_query_asks_for_series_that_the_operator_has(expression: str) -> None:
    families = list(Metrics(version="1").registry.collect())
    names = {name for family in families for name in (family.name, f"{family.name}_total", f"{family.name}_bucket")} | {"mpiop_jobs"}
    assert set(re.findall(r"\b(?:mpiop?|workqueue|process)_\w+", expression)) <= names


def test_panels_are_side_by_side_and_none_covers_another() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


def answer(rows: list[tuple[dict[str, str], list[float]]], *, is_stacked: bool = False) -> dict[str, Any]:
    """Return a panel with one query, and the rows that it got, a value each second."""
    custom = {"stacking": {}} if is_stacked else {}
    targets = [{"legendFormat": "state {{state}}"}]
    panel = {"title": "Jobs <now>", "targets": targets, "fieldConfig": {"defaults": {"unit": "short", "custom": custom}}}
    results = [[{"metric": labels, "values": [[index, str(value)] for index, value in enumerate(values)]} for labels, values in rows]]
    return {"panel": panel, "results": results}


def heights(text: str) -> list[list[float]]:
    """Return the y coordinates of each line of a picture, as parts of the plot's height from below."""
    lines = [node.attrib["points"] for node in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}polyline")]  # noqa: S314 - ours
    return [[round((152 - float(point.partition(",")[2])) / 118, 2) for point in line.split()] for line in lines]


def test_lines_have_the_names_of_the_legend_and_no_value_that_is_none() -> None:
    [line] = lines_of(answer([({"state": "Running"}, [1, float("nan"), 3])]))
    assert (line.name, line.values) == ("state Running", {0: 1, 2: 3})


def test_a_picture_shows_each_line_up_to_the_largest_value() -> None:
    text = picture([answer([({"state": "a"}, [0, 2]), ({"state": "b"}, [4, 1])])])
    assert sorted(heights(text)) == [[0, 0.5], [1, 0.25]]
    assert "Jobs &lt;now&gt;" in text


def test_stacked_lines_stand_on_each_other() -> None:
    text = picture([answer([({"state": "a"}, [1, 3]), ({"state": "b"}, [1, 1])], is_stacked=True)])
    assert sorted(heights(text)) == [[0.25, 0.75], [0.5, 1]]


def test_a_panel_without_data_is_empty() -> None:
    assert heights(picture([answer([])])) == []
