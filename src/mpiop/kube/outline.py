"""Finds the parts of a JSON text without recursion: the text may be nested as deeply as its author likes.

A decoder recurses, and how deep it can go depends on the version of Python. So one rule decides before which objects are not decoded.
"""

import re
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

MOST_LEVELS: Final = 256
"""Levels of an object that is decoded. Real objects have up to 30; the decoder manages 900 on every Python that we run on."""

_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""As signed bytes, 1 for each opening bracket and -1 for each closing one."""
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS_IN_PLACE: Final = bytes({91: 1, 123: 1, 93: 255, 125: 255}.get(byte, 0) for byte in range(256))
_SHORT_BYTES: Final = 8192
"""Up to here, brackets are found one by one; in a longer value, block by block: a mebibyte has as many as its author likes."""
_BLOCK_BYTES: Final = 65_536
"""Takes a few milliseconds, in which no other thread runs, and a mebibyte of memory."""

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY: Final = re.compile(rb"\s*+(%s)\s*+:\s*+" % _STRING, re.DOTALL)
_SCALAR: Final = re.compile(rb'%s|[^\s\[\]{},:"]++' % _STRING, re.DOTALL)
_COMMA: Final = re.compile(rb"\s*+,\s*+")
_FLAT: Final = rb'[^"\[\]{}]++|' + _STRING
# Atomic groups: before Python 3.11.5 (Debian 12 has 3.11.2), `(...)*+` is wrong where what it repeats backtracks.
_SHALLOW: Final = rb"%s|[\[{](?>(?:%s|[\[{](?>(?:%s)*)[\]}])*)[\]}]" % (_FLAT, _FLAT, _FLAT)
_BRACKET: Final = re.compile(rb"(?>(?:%s)*)([\[\]{}])" % _SHALLOW, re.DOTALL)
"""Matches up to the next bracket that counts: what has one or two levels is passed at once."""


def is_deep(text: bytes) -> bool:
    """Return whether a JSON text has more than `MOST_LEVELS` levels; for a text with few brackets this takes next to no time."""
    # What is empty is the last of its levels; managedFields have hundreds of these.
    if text.count(b"{") + text.count(b"[") - text.count(b"{}") - text.count(b"[]") < MOST_LEVELS:
        return False
    level = 0
    for _, outside in _blocks(text, 0):
        levels = _levels(outside.translate(_STEPS, _OTHERS), level)
        if max(levels) > MOST_LEVELS:
            return True
        level = levels[-1]
    return False


def find(text: bytes, *path: bytes) -> int:
    """Return where the value at `path` begins, in the JSON object that begins `text`; nothing after it is read.

    Raises:
        ValueError: There is none.
    """
    at = 0
    for name in path:
        at = _find_member(text, at, name)
    return at


def value(text: bytes, *path: bytes) -> bytes:
    """Return the text of the value at `path` (see `find`)."""
    start = find(text, *path)
    return text[start : _end(text, start)]


def members(text: bytes, start: int) -> Iterator[tuple[str, bytes]]:
    """Yield the names, as they are written, and the texts of the members of the JSON object that begins at `start`.

    Raises:
        ValueError: It is not an object, or does not end.
    """
    at = _opened(text, start, b"{")
    while (key := _KEY.match(text, at)) is not None:
        end = _end(text, key.end())
        yield key[1][1:-1].decode(errors="replace"), text[key.end() : end]
        at = _next(text, end, b"}")


def elements(text: bytes, start: int) -> Iterator[bytes]:
    """Yield the texts of the elements of the JSON array that begins at `start`.

    Raises:
        ValueError: It is not an array, or does not end.
    """
    at = _opened(text, start, b"[")
    while not text.startswith(b"]", at):
        end = _end(text, at)
        yield text[at:end]
        at = _next(text, end, b"]")


def _find_member(text: bytes, start: int, name: bytes) -> int:
    at = _opened(text, start, b"{")
    while (key := _KEY.match(text, at)) is not None:
        if key[1][1:-1] == name:
            return key.end()
        at = _next(text, _end(text, key.end()), b"}")
    raise ValueError(f"no member {name.decode()} in the object at byte {start}")


def _opened(text: bytes, start: int, bracket: bytes) -> int:
    """Return where the first part of what `bracket` opens at `start` begins, or its end is."""
    if not text.startswith(bracket, start):
        raise ValueError(f"no {bracket.decode()} at byte {start}")
    return _past_space(text, start + 1)


def _next(text: bytes, end: int, closing: bytes) -> int:
    """Return where the part after the one that ends at `end` begins, or `closing` is."""
    if (comma := _COMMA.match(text, end)) is not None:
        return comma.end()
    at = _past_space(text, end)
    if not text.startswith(closing, at):
        raise ValueError(f"neither a comma nor {closing.decode()} at byte {at}")
    return at


def _past_space(text: bytes, at: int) -> int:
    return len(text) - len(text[at:].lstrip()) if text[at : at + 1].isspace() else at


def _end(text: bytes, start: int) -> int:
    """Return where the value that begins at `start` ends."""
    if not text.startswith((b"{", b"["), start):
        if (scalar := _SCALAR.match(text, start)) is None:
            raise ValueError(f"no value at byte {start}")
        return scalar.end()
    depth, at, short = 1, start + 1, start + _SHORT_BYTES
    while depth and (bracket := _BRACKET.match(text, at, short)) is not None:
        depth, at = depth + (1 if bracket[1] in b"[{" else -1), bracket.end()
    return at if depth == 0 else _end_of_long(text, start)


def _end_of_long(text: bytes, start: int) -> int:
    """Return where the array or object that begins at `start` ends."""
    level = 0
    for at, outside in _blocks(text, start):
        levels = _levels(outside.translate(_STEPS, _OTHERS), level)
        if 0 in levels[1:]:
            return at + _levels(outside.translate(_STEPS_IN_PLACE), level).index(0, 1)
        level = levels[-1]
    raise ValueError(f"the value at byte {start} does not end")


def _levels(steps: bytes, level: int) -> list[int]:
    """Return `level`, and the level after each step from there."""
    return list(accumulate(array("b", steps), initial=level))


def _blocks(text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the text from `start` on, which is outside of a string, in blocks: where each begins, and its bytes; those of strings are 0."""
    is_string = 0
    while start < len(text):
        block = text[start : start + _BLOCK_BYTES]
        if (len(block) - len(block.rstrip(b"\\"))) % 2:  # its last backslash escapes what follows
            block = text[start : start + len(block) + 1]
        length = len(block)
        if b"\\" in block:
            block = block.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        parts = block.split(b'"')
        strings = slice(1 - is_string, None, 2)
        parts[strings] = map(bytes, map(len, parts[strings]))
        yield start, b"\0".join(parts)
        is_string = (is_string + len(parts) - 1) % 2
        start += length
