"""Quantities that users write, and messages about them, in words and not in regular expressions."""

import re
from typing import Final

from mpiop.client.errors import InvalidError
from mpiop.kube.quantity import is_quantity, value_of

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtpe])(i?)b?", re.IGNORECASE)
_SHOULD_MATCH: Final = re.compile(r"(?:should|must) match (?:the regular expression )?'\^\(?\[\+-\]\?[^']*'")
"""What the API server reports of a quantity."""
_VALIDATION: Final = re.compile(r",? ?regex used for validation is '[^']*'")


def check_cpu(field: str, text: str) -> None:
    """Raise InvalidError if `text` is neither empty nor a number of CPUs."""
    if text and not (is_quantity(text) and value_of(text) > 0):
        raise InvalidError(f"{field} {text}: write a number of CPUs, such as 2 or 500m")


def check_size(field: str, text: str) -> None:
    """Raise InvalidError if `text` is neither empty nor a number of bytes: Kubernetes reads 500m as half a byte."""
    if not text or (is_quantity(text) and value_of(text) >= 1 and not text.endswith("m")):
        return
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InvalidError(f"{field} {text}: write a number of bytes, such as 8Gi or 500Mi")
    number, unit, is_binary = found.groups()
    binary = f"{number}{unit.upper()}i"
    decimal = f"{number}{unit.lower() if unit in 'kK' else unit.upper()}"
    raise InvalidError(f"{field} {text}: write {binary if is_binary else f'{decimal} or {binary}'}")


def without_patterns(message: str) -> str:
    """Return a message of the API server with examples instead of regular expressions, which fill a screen."""
    return _VALIDATION.sub("", _SHOULD_MATCH.sub("must be a number with or without a unit, such as 8Gi, 2 or 500m", message))
