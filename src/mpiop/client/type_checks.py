"""Checks values against the types of a dataclass's fields, so that a mistake is one sentence that names the field."""

import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from mpiop.client.errors import InvalidError

_NAMES: Final[Mapping[Any, str]] = {int: "a whole number", str: "a string", bool: "True or False", types.NoneType: "None", Any: "anything"}
_UNIONS: Final = (Union, types.UnionType)


def check_types(record: Any) -> None:
    """Check each field of a dataclass instance.

    Raises:
        InvalidError: A value has another type than its field.
    """
    hints = _hints(record.__class__)
    for field in fields(record):
        check_type(field.name, getattr(record, field.name), hints[field.name])


def check_type(name: str, value: Any, hint: Any, words: str = "") -> None:
    """Check the value of the field `name` against a type hint, which `words` describe.

    Raises:
        InvalidError: It has another type: the name, the value, and what it must be.
    """
    if not _matches(value, hint):
        raise InvalidError(f"{name} is {reprlib.repr(value)}: it must be {words or _described(hint)}")


@cache
def _hints(record: Callable[..., Any]) -> Mapping[str, Any]:
    return get_type_hints(record)


def _matches(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    parts: Any = value
    if hint is Any:
        return True
    if origin in _UNIONS:
        return any(_matches(value, each) for each in inner)
    if origin is tuple:
        return isinstance(value, tuple) and len(parts) == len(inner) and all(map(_matches, parts, inner))
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_matches(key, inner[0]) and _matches(each, inner[1]) for key, each in parts.items())
    if origin is Sequence:
        return isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(_matches(each, inner[0]) for each in parts)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _described(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return " or ".join(map(_described, inner))
    if origin is tuple:
        return f"a tuple of {' and '.join(map(_described, inner))}"
    if origin is Mapping:
        return "a dict with strings as keys" + ("" if inner[1] is Any else " and values")
    return "a list of strings" if origin is Sequence else _NAMES[hint]
