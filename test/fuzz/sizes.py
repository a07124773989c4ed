"""Values whose size breaks programs: deep ones, wide ones and long texts."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

MOST_LEVELS = 10_001
"""An API server reads 10,000."""
CRITICAL_LEVELS = (9_900, MOST_LEVELS)
"""An API server stores some of these objects and cannot read them again, unless the CRD drops unknown fields."""
ITEMS, KEYS = (1_000, 2_000), (1_000, 10_000)
"""For 10,000 items of a wrong type an API server computes 17 s, whatever the CRD, for 4,000 some 3 s: many at once stop it for everyone."""
LENGTHS = (100_000, 1_000_000, 1_400_000)
"""Bytes. etcd takes 1.5 MiB."""
BRACKETS = (('{"a":', "}"), ("[", "]"), ('[{"a":', "}]"))


@st.composite
def deep(draw: st.DrawFn) -> msgspec.Raw:
    """Draw JSON with up to `MOST_LEVELS` levels; Python's own encoder cannot write it."""
    levels = draw(st.one_of(st.integers(1, MOST_LEVELS), st.integers(*CRITICAL_LEVELS)))
    opening, closing = draw(st.sampled_from(BRACKETS))
    count = levels // len(closing)
    return msgspec.Raw(f"{opening * count}1{closing * count}".encode())


@st.composite
def wide_list(draw: st.DrawFn, items: st.SearchStrategy[Any]) -> list[Any]:
    """Draw a list of equal items; each has a name of its own if it has one."""
    item, width = draw(items), draw(st.sampled_from(ITEMS))
    return [item | {"name": f"wide-{number}"} if isinstance(item, dict) and "name" in item else item for number in range(width)]


@st.composite
def wide_map(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Draw an object with one value at many keys."""
    return dict.fromkeys((f"wide-{number}" for number in range(draw(st.sampled_from(KEYS)))), draw(values))


@st.composite
def long_text(draw: st.DrawFn, pieces: Sequence[str], lengths: Sequence[int] = LENGTHS) -> str:
    """Draw one of `pieces`, repeated until the text has about one of the `lengths`."""
    piece = draw(st.sampled_from(pieces))
    return piece * (draw(st.sampled_from(lengths)) // len(piece.encode()))
