"""Text is cut to what the API server takes, and never inside a character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiop.kube.text import truncated


@pytest.mark.parametrize(
    ("text", "desired"),
    [("short", "short"), ("12345678", "12345678"), ("123456789", "12345..."), ("1234é789", "1234..."), ("\ud800", "?")],
)
def test_truncated(text: str, desired: str) -> None:
    assert truncated(text, 8) == desired


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=200, max_size=1200))
def test_a_cut_is_never_inside_a_character(text: str) -> None:
    result = truncated(text)
    assert len(result.encode()) <= 1024
    assert result == text if len(text.encode()) <= 1024 else result.endswith("...")
    assert text.startswith(result.removesuffix("..."))
