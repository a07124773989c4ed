"""What a row of the table of spec fields consists of: see `spec_fields`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mpiop.api.annotation_row import Hashed
from mpiop.api.fields import INT32_MAX, INT64_MAX, Fields, invalid, unsupported

_QUANTITY_ADVICE: Final = (
    'must be a quantity such as 2, "500m" or "16Gi"; minResources takes resource names directly, without `requests:` or `limits:` between'
)


@dataclass(frozen=True, slots=True)
class Boolean:
    """true or false."""

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        """Return the value of a field, or `default` if it is absent or no boolean; add an error for the latter."""
        return fields.boolean(name, default)

    def errors(self, path: str, value: Any) -> Iterator[str]:
        """Yield nothing: every boolean is valid."""
        del path, value
        yield from ()


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from 0 to `maximum`, which is that of its Go type."""

    maximum: int = INT32_MAX

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        """Return the value of a field, or `default` if it is absent or no such number; add an error for the latter."""
        return fields.integer(name, default, maximum=self.maximum)

    def errors(self, path: str, value: Any) -> Iterator[str]:
        """Yield an error for a negative number."""
        if value < 0:
            yield invalid(path, value, "must be 0 or more")


@dataclass(frozen=True, slots=True)
class Text:
    """A string of at most `max_length` characters that matches the regular expression `pattern`, if any.

    Attributes:
        advice: What to do if it does not match.
    """

    max_length: int
    pattern: str = ""
    advice: str = ""

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        """Return the value of a field, or `default` if it is absent or no string; add an error for the latter."""
        return fields.string(name, default)

    def errors(self, path: str, value: Any) -> Iterator[str]:
        """Yield an error for a text that does not match; the API server alone counts the characters."""
        if self.pattern and not re.fullmatch(self.pattern, value):
            yield invalid(path, value, self.advice)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some strings; `max_length` bounds the cost of the rules of the CRD that compare it, 0 without such a rule."""

    values: tuple[str, ...]
    max_length: int = 0

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        """Return the value of a field, or `default` if it is absent or no string; add an error for the latter."""
        return fields.string(name, default)

    def errors(self, path: str, value: Any) -> Iterator[str]:
        """Yield an error for another string."""
        if value not in self.values:
            yield unsupported(path, value, self.values)


@dataclass(frozen=True, slots=True)
class Quantities:
    """Quantities by the names of resources."""

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        """Return the quantities as strings, as the server writes them, or `default`; add an error for any other value."""
        if (child := fields.child(name)) is None:
            return default
        quantities: dict[str, str] = {}
        for resource, value in child.values.items():
            if isinstance(value, str):
                quantities[resource] = value
            elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= INT64_MAX:
                quantities[resource] = repr(value)
            elif value is not None:
                child.errors.append(invalid(child.at(resource), value, _QUANTITY_ADVICE))
        return quantities

    def errors(self, path: str, value: Any) -> Iterator[str]:
        """Yield nothing: the API server alone knows which quantities are valid."""
        del path, value
        yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecField:
    """A field that users set in the spec of an MPIJob.

    Attributes:
        name: As in YAML.
        field: The attribute that it sets, of the dataclass for its object (`types`).
        kind: Reads and checks it.
        default: What counts if it is absent; None or "" means that there is none.
        is_stored: Whether the API server stores the default, as a default of the CRD.
        takes_empty: Whether "" is accepted, and counts as absent.
        help: What it is for, as `kubectl explain` shows it.
        in_revision: None if an edit takes effect at any time, or if the hashes have always had it (see `controller.objects.revision`).
    """

    name: str
    field: str
    kind: Boolean | Integer | Text | Choice | Quantities
    default: Any = None
    is_stored: bool = True
    takes_empty: bool = False
    help: str
    in_revision: Hashed | None

    def read(self, fields: Fields) -> Any:
        """Return the value of the field in `fields`, or its default; add an error if it is of another type."""
        value = self.kind.read(fields, self.name, self.default)
        return self.default if self.takes_empty and not value else value
