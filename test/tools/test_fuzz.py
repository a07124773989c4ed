"""Random jobs try every annotation that users may set."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fuzz.annotations import WORDS, right_annotations
from fuzz.jobs import Strange, good_job, random_jobs
from fuzz.sizes import deep, long_text, wide_list, wide_map
from mpiop.api.parse import parse_mpijob
from mpiop.api.validation import validate


@settings(max_examples=200, database=None, deadline=None)
@given(right_annotations())
def test_what_random_jobs_hold_for_right_is_understood(annotations: dict[str, str]) -> None:
    job: Any = good_job("pi")
    job["metadata"]["annotations"] = annotations
    assert validate(parse_mpijob(job)) == ()


@pytest.fixture(scope="module")
def jobs() -> list[Strange]:
    return random_jobs(1500, 1)


def values_of(jobs: list[Strange], name: str) -> list[str]:
    return [each.job["metadata"].get("annotations", {}).get(name, "") for each in jobs]


@pytest.mark.parametrize("name", WORDS)
def test_random_jobs_have_each_of_them_right_and_hostile(jobs: list[Strange], name: str) -> None:
    found = values_of(jobs, name)
    assert set(found) & set(WORDS[name])
    assert max(map(len, found)) > 1000


def test_random_jobs_are_made_in_each_way(jobs: list[Strange]) -> None:
    assert {each.how for each in jobs} == {"by the schema", "changed", "wrong", "named", "deep", "wide", "long"}
    for each in jobs:
        assert msgspec.json.encode(each.job)


def is_found(values: st.SearchStrategy[Any], condition: Callable[[Any], bool]) -> bool:
    return condition(find(values, condition, settings=settings(max_examples=10_000, database=None, phases=[Phase.generate])))


@pytest.mark.parametrize(("least", "most"), [(1, 5_000), (5_000, 9_900), (9_985, 9_994), (10_001, 10_001)])
def test_values_are_of_every_depth(least: int, most: int) -> None:
    assert is_found(deep().map(lambda drawn: len(re.findall(rb"[{\[]", bytes(drawn)))), lambda levels: least <= levels <= most)


def test_values_are_wide_and_long() -> None:
    names = wide_list(st.just({"name": "a", "b": 1})).map(lambda drawn: len({each["name"] for each in drawn}))
    assert is_found(names, lambda width: width == 2_000)
    assert is_found(wide_map(st.none()).map(len), lambda width: width == 10_000)
    assert is_found(long_text(["é"]).map(lambda drawn: len(drawn.encode())), lambda length: length == 1_400_000)


def test_a_change_of_one_role_is_none_of_the_other() -> None:
    roles = good_job("pi")["spec"]["mpiReplicaSpecs"]
    roles["Worker"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert roles["Launcher"]["template"]["spec"]["containers"][0]["image"] != "other"
