"""Paths inside a container, as its runtime understands them."""

from posixpath import commonpath, normpath


def absolute(path: str) -> str:
    """Return the normalised path; a relative one starts at the root."""
    return normpath("/" + path.strip("/"))


def overlap(one: str, other: str) -> bool:
    """Return whether one of two absolute paths is the other, or above or below it."""
    return commonpath([one, other]) in {one, other}
