"""Parts of a JSON text are found as a decoder finds them, however deep the text is."""

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiop.kube import outline
from mpiop.kube.outline import MOST_LEVELS, elements, find, is_deep, members, value

NAMES = st.text(alphabet='ab"\\{}[],: \n\x00é', max_size=4)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=30)


def as_text(content: Any, *, is_indented: bool) -> bytes:
    return json.dumps(content, indent=1 if is_indented else None, ensure_ascii=is_indented).encode()


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.booleans())
def test_the_members_of_an_object_are_found(content: dict[str, Any], is_indented: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    text = as_text({"outer": [content], **content, "last": content}, is_indented=is_indented)
    for name, member in content.items():
        written = as_text(name, is_indented=is_indented)[1:-1]
        assert json.loads(value(text, b"last", written)) == member
        assert text.startswith(value(text, b"last", written), find(text, b"last", written))


@given(st.lists(VALUES, max_size=6), st.booleans())
def test_the_elements_of_an_array_are_found(content: list[Any], is_indented: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    assert list(map(json.loads, elements(as_text(content, is_indented=is_indented), 0))) == content


@given(VALUES, VALUES, st.integers(0, 4), st.booleans())
def test_long_values_end_where_a_decoder_says(first: Any, last: Any, shift: int, is_indented: bool) -> None:  # noqa: FBT001 - as above
    content = {"a": ["x" * shift + '\\"[{' * 30_000, first], "b": last}
    text = as_text(content, is_indented=is_indented)
    found = {name: json.loads(member) for name, member in members(text + text, 0)}
    assert found == content


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"\\"]":', b"}]"), (b'[[],{"a":{}},"[[",', b"]")])
@pytest.mark.parametrize("levels", [1, MOST_LEVELS // 2, 100_000])
def test_levels_are_counted_outside_of_strings(opening: bytes, closing: bytes, levels: int) -> None:
    text = opening * levels + b'"\\\\"' + closing * levels
    assert is_deep(text) == (levels * (opening.startswith(b'[{"\\') + 1) > MOST_LEVELS)
    assert not is_deep(b"[%s]" % b",".join([b"[{}]"] * 1000))


@pytest.mark.parametrize("inner", [b"", b"0", b'"{}[]{}[]"', b"[],[]"])
@pytest.mark.parametrize("levels", [MOST_LEVELS - 1, MOST_LEVELS, MOST_LEVELS + 1])
def test_what_is_empty_counts_as_a_level(inner: bytes, levels: int) -> None:
    text = b"[" * levels + inner + b"]" * levels
    assert is_deep(text) == (levels + inner.startswith(b"[") > MOST_LEVELS)


def test_many_small_parts_are_passed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "_blocks", None)
    assert not is_deep(b"{%s}" % b",".join(b'"f:%d":{}' % number for number in range(1000)))


def seconds(function: Callable[[], object]) -> float:
    """Return the least processor time of three calls."""
    times = list[float]()
    for _ in range(3):
        begun = time.process_time()
        function()
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize("nested", [b"[" * 500_000 + b"]" * 500_000, b"[%s0]" % (b"[[[[]]]]," * 100_000)])
def test_a_long_value_is_passed_about_as_quickly_as_it_is_counted(nested: bytes) -> None:
    text, flat = b'{"a":%s,"b":1}' % nested, b"[%s0]" % (b"[0]," * 500_000)
    assert seconds(lambda: find(text, b"b")) < 10 * seconds(lambda: is_deep(flat))


def test_a_long_value_is_passed_in_little_memory() -> None:
    text = b'{"a":%s%s,"b":1}' % (b"[" * 1_000_000, b"]" * 1_000_000)
    tracemalloc.start()
    try:
        assert value(text, b"b") == b"1"
        assert is_deep(text)
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [b"", b"5", b"[", b"[1", b"[1,", b"[1 2]", b'["', b"[1}", b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1 "b":2}', b"{a:1}", b'{"a":{'],
)
def test_what_is_malformed_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="byte"):
        list(elements(text, 0))
    with pytest.raises(ValueError, match="byte"):
        value(text, b"b")
    with pytest.raises(ValueError, match="byte"):
        value(text, b"a", b"b")
