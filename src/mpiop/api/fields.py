"""Reading fields of a wire object that may hold anything: each reader returns a usable value and notes what was wrong.

Null counts as absent, as it does for Kubernetes' own decoders. Messages follow `k8s.io/apimachinery/pkg/util/validation/field`:
`<path>: <kind of error>: <value>: <what to do>`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, cast

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_SHOWN_CHARACTERS: Final = 64
_JSON_TYPES: Final = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "string",
    "list": "array",
    "dict": "object",
    "NoneType": "null",
}

T = TypeVar("T")


def shown(value: object) -> str:
    """Render a value for a message: scalars quoted, escaped and cut, everything else by the name of its JSON type."""
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "...")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INT64_MAX:
        return str(value)
    return f'"{type_name(value)}"'


def type_name(value: object) -> str:
    """Return the JSON name of the type of `value`."""
    name = type(value).__name__
    return _JSON_TYPES.get(name, name)


def invalid(path: str, value: object, advice: str) -> str:
    """Return the message for a value that is wrong."""
    return f"{path}: Invalid value: {shown(value)}: {advice}"


def required(path: str, advice: str) -> str:
    """Return the message for a value that is missing."""
    return f"{path}: Required value: {advice}"


def unsupported(path: str, value: object, supported: Iterable[str]) -> str:
    """Return the message for a value that is not one of `supported`."""
    return f"{path}: Unsupported value: {shown(value)}: supported values: {', '.join(json.dumps(name) for name in supported)}"


def duplicate(path: str, value: object) -> str:
    """Return the message for a value that must be unique in its list."""
    return f"{path}: Duplicate value: {shown(value)}"


def as_mapping(value: object) -> Mapping[str, Any] | None:
    """Return `value` if it is a JSON object."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def as_integer(value: object) -> int | None:
    """Return `value` if it is a whole number (2.0 is one, true is none)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Fields:
    """The fields of one JSON object at `path`; problems are added to `errors`, which all objects of a parse share."""

    def __init__(self, values: Mapping[str, Any], path: str, errors: list[str]) -> None:
        """Read from `values`."""
        self.values = values
        self.path = path
        self.errors = errors

    def at(self, name: str) -> str:
        """Return the path of the field `name`."""
        return f"{self.path}.{name}" if self.path else name

    def string(self, name: str, default: T) -> str | T:
        """Return the string `name`, or `default` when it is absent or wrong."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.errors.append(invalid(self.at(name), value, "must be a string; put it in quotes"))
        return default

    def boolean(self, name: str, default: T) -> bool | T:
        """Return the boolean `name`, or `default` when it is absent or wrong."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.errors.append(invalid(self.at(name), value, "must be true or false, without quotes"))
        return default

    def integer(self, name: str, default: T, *, maximum: int = INT32_MAX) -> int | T:
        """Return the integer `name`, or `default` when it is absent, no integer, or beyond what its Go type can hold."""
        value = self.values.get(name)
        if value is None:
            return default
        number = as_integer(value)
        if number is None:
            self.errors.append(invalid(self.at(name), value, "must be a whole number, without quotes"))
        elif not -maximum - 1 <= number <= maximum:
            self.errors.append(invalid(self.at(name), value, f"must be at most {maximum}"))
        else:
            return number
        return default

    def child(self, name: str) -> "Fields | None":
        """Return the object `name`, or None when it is absent or wrong."""
        value = self.values.get(name)
        mapping = as_mapping(value)
        if mapping is not None:
            return Fields(mapping, self.at(name), self.errors)
        if value is not None:
            self.errors.append(invalid(self.at(name), value, "must be an object: indent its fields below it"))
        return None
