"""Merge patches: nothing that we do not set is touched, nothing that is as it should be is sent."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.semantics import merged
from mpiop.controller.plan.merge_patch import merge_patch


class Case(NamedTuple):
    id: str
    desired: dict[str, Any]
    have: dict[str, Any]
    patch: dict[str, Any]
    whole: frozenset[str] = frozenset()


CASES = [
    Case("all as it should be", {"a": 1, "b": {"c": "x"}}, {"a": 1, "b": {"c": "x", "d": "theirs"}}, {}),
    Case("absent equals empty", {"a": False, "b": "", "c": [], "d": {}}, {}, {}),
    Case("empty is written over something", {"a": False, "b": []}, {"a": True, "b": [1]}, {"a": False, "b": []}),
    Case("only what differs is sent", {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 2}}),
    Case("a list is replaced whole", {"a": [1, 2]}, {"a": [1]}, {"a": [1, 2]}),
    Case("foreign keys stay", {"labels": {"a": "1"}}, {"labels": {"a": "1", "b": "2"}}, {}),
    Case(
        "but not where a map is ours",
        {"selector": {"a": "1"}},
        {"selector": {"a": "1", "b": "2"}},
        {"selector": {"b": None}},
        frozenset({"selector"}),
    ),
    Case("at any depth below", {"s": {"W": {}}}, {"s": {"W": {"active": 1}}}, {"s": {"W": {"active": None}}}, frozenset({"s"})),
    Case("an empty object of ours is kept as a key", {"s": {"W": {}}}, {"s": {}}, {"s": {"W": {}}}, frozenset({"s"})),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_patch(case: Case) -> None:
    assert merge_patch(case.desired, case.have, whole=case.whole) == case.patch


JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


@given(desired=OBJECTS, have=OBJECTS)
def test_a_patched_object_needs_no_second_patch(desired: dict[str, Any], have: dict[str, Any]) -> None:
    patched = merged(have, merge_patch(desired, have))
    assert merge_patch(desired, patched) == {}
