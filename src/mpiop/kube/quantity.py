"""Sums of quantities (`resource.Quantity`: cpu, memory …), exact, and written as Kubernetes writes them."""

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

_SYNTAX: Final = re.compile(r"([+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64}))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?")
_BINARY: Final = {suffix: Fraction(1024) ** (index + 1) for index, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL: Final = {suffix: Fraction(1000) ** (index - 3) for index, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))}


def sum_quantities(addends: Iterable[tuple[str, int]]) -> str:
    """Return the sum of `quantity * times`, in the form (decimal or binary) of the first addend that is not 0; "0" for none.

    Raises:
        ValueError: One of them is not a valid quantity.  Source: apimachinery pkg/api/resource, quantity.go.
    """
    total, is_binary = Fraction(0), False
    for quantity, times in addends:
        value, suffix = _parse(quantity)
        if not total:
            is_binary = suffix in _BINARY
        total += value * times
    return _render(total, is_binary=is_binary)


def is_quantity(text: str) -> bool:
    """Return whether `text` is a quantity; one that takes long to compute with, such as 1e999999999, counts as none."""
    return _SYNTAX.fullmatch(text) is not None


def value_of(quantity: str) -> Fraction:
    """Return `quantity` as a number: 1024 for 1Ki.

    Raises:
        ValueError: It is not a valid quantity.
    """
    return _parse(quantity)[0]


def _parse(quantity: str) -> tuple[Fraction, str]:
    found = _SYNTAX.fullmatch(quantity)
    if found is None:
        raise ValueError(f"no quantity: {quantity!r}; expected a number with a suffix such as m, k, Mi, Gi or none")
    number, suffix = Fraction(found[1]), found[2] or ""
    if suffix in _BINARY:
        return number * _BINARY[suffix], suffix
    if suffix in _DECIMAL:
        return number * _DECIMAL[suffix], suffix
    return number * Fraction(10) ** int(suffix[1:]), suffix


def _render(value: Fraction, *, is_binary: bool) -> str:
    """Write the value with the largest suffix that leaves an integer; what is finer than a billionth is rounded up to one."""
    in_binary = is_binary and value.denominator == 1 and abs(value) >= _BINARY["Ki"]
    suffixes = {"": Fraction(1)} | _BINARY if in_binary else _DECIMAL
    fitting = [suffix for suffix, unit in suffixes.items() if (value / unit).denominator == 1] if value else [""]
    if not fitting:
        return _render(Fraction(-(-value // _DECIMAL["n"])) * _DECIMAL["n"], is_binary=False)
    return f"{value / suffixes[fitting[-1]]}{fitting[-1]}"
