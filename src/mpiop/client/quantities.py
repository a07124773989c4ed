"""Quantities that users write: one sentence says how to write one that Kubernetes rejects, or reads in another way than was meant."""

import re
from typing import Final

from mpiop.client.errors import InvalidError
from mpiop.kube.quantity import is_quantity, value_of

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtpe])(i?)b?", re.IGNORECASE)


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
