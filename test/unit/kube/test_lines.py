"""Chunks to lines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiop.kube.errors import TransportError
from mpiop.kube.lines import LineSplitter

LINES = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"_")))


@given(lines=LINES, rest=st.binary(max_size=5).map(lambda line: line.replace(b"\n", b"_")), cuts=st.lists(st.integers(0, 200)))
def test_lines_do_not_depend_on_how_the_stream_is_cut(lines: list[bytes], rest: bytes, cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines) + rest
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = LineSplitter()
    found = [line for start, end in pairwise(places) for line in splitter.feed(stream[start:end])]
    assert found == [line for line in lines if line]


def test_F31_a_line_of_32_mebibytes_in_small_chunks_is_one_line() -> None:
    splitter = LineSplitter()
    chunk = b"x" * 65536
    for _ in range(512):
        assert splitter.feed(chunk) == []
    assert splitter.feed(b"\nnext") == [chunk * 512]
    assert splitter.feed(b"\n") == [b"next"]


def test_a_line_beyond_the_limit_is_refused() -> None:
    splitter = LineSplitter(limit_bytes=10)
    splitter.feed(b"12345\n1234567890")
    with pytest.raises(TransportError, match="more than 10 bytes"):
        splitter.feed(b"1")
