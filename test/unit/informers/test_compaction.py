"""Small objects: what is left out, what is shared, and that nothing is changed by it."""

import tracemalloc
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.store_memory import running_pod
from mpiop.informers.compaction import Compactor, has_name, preparation
from mpiop.kube.objects import Key, Object

WIRE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=300),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=4), children, max_size=4),
    max_leaves=30,
)


def object_with(spec: Any) -> Object:
    return cast("Object", {"kind": "Pod", "metadata": {"name": "a"}, "spec": spec})


@given(st.lists(WIRE, min_size=1, max_size=5), st.integers(1, 20))
def test_a_compact_object_is_equal_to_the_original_which_stays_as_it_is(specs: list[Any], capacity: int) -> None:
    compactor, kept = Compactor(capacity), None
    for spec in specs:
        original = object_with(spec)
        before = repr(original)  # it distinguishes 1, 1.0 and True
        kept = compactor.compact(original, kept)
        assert repr(kept) == before
        assert repr(original) == before


def nested(levels: int) -> Any:
    """Return a dictionary in a dictionary, and so on."""
    value: Any = "x" * 600
    for _ in range(levels):
        value = {"a": value}
    return value


def test_an_object_may_be_as_deep_as_a_stranger_likes() -> None:
    original = object_with(nested(800))
    compacted = Compactor().compact(original)
    assert msgspec.json.encode(compacted) == msgspec.json.encode(original)


def test_a_long_part_that_did_not_change_is_the_one_before() -> None:
    def long(number: Any) -> Object:
        return object_with({"words": ["word"] * 200, "number": number})

    prepare = preparation({Key("", "a"): (first := Compactor().compact(long(1)))}.get)
    assert cast("Any", prepare(long(1)))["spec"] is first["spec"]
    changed = prepare(long(1.0))
    assert changed is not None
    assert repr(changed["spec"]) == repr(long(1.0)["spec"])


def test_equal_parts_of_different_objects_are_one() -> None:
    compactor = Compactor()
    text = msgspec.json.encode(object_with({"containers": [{"name": "c"}]}))
    first, second = (compactor.compact(msgspec.json.decode(text)) for _ in range(2))
    assert first.get("spec") is second.get("spec") is not None


def test_the_memory_of_parts_is_bounded() -> None:
    compactor = Compactor(capacity=100)
    for number in range(1000):
        compactor.compact(object_with({"number": str(number)}))
        assert len(compactor._parts) + len(compactor._strings) <= 100 + 10, "the capacity, and what one object has"


def test_parts_that_only_look_equal_are_not_shared() -> None:
    compactor = Compactor()
    values = [{"a": 1}, {"a": True}, {"a": 1.0}, {"a": "1"}, {"a": [1]}, {"a": [True]}]
    assert [repr(compactor.compact(object_with(value))["spec"]) for value in values] == [repr(value) for value in values]


@pytest.mark.parametrize(
    "thing", [None, "pod", 5, [], {}, {"metadata": None}, {"metadata": []}, {"metadata": {}}, {"metadata": {"name": ""}}]
)
def test_what_has_no_name_is_left_out(thing: Any) -> None:
    assert not has_name(thing)
    assert preparation()(thing) is None


def test_a_whole_pod_takes_no_more_than_4_kib() -> None:
    prepare = preparation()
    pods = [msgspec.json.decode(msgspec.json.encode(running_pod(number))) for number in range(300)]
    tracemalloc.start()
    try:
        kept = [prepare(whole) for whole in pods]
        del prepare  # its memory is bounded for a selection, whatever the number of pods
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used / len(kept) <= 4096
