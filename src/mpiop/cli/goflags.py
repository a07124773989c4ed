"""Command line flags in the syntax of Go's `flag` package, so that arguments written for the reference operator mean the same here.

`-x` and `--x` are one; a value follows after `=` or as the next argument; a boolean takes its value after `=` only. Unlike Go, an argument
that is not a flag is an error: there it would silently end the flags.  Source: https://pkg.go.dev/flag
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_OLD_OCTAL = re.compile(r"[+-]?0[0-9_]+")


class FlagError(ValueError):
    """The command line is invalid; the message is one sentence for the user who typed it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of values.

    Attributes:
        placeholder: Represents a value in the help; "" for a boolean.
        parse: Turns text into a value, or raises ValueError with what it expects instead.
        render: Turns a value into the text that the help shows.
    """

    placeholder: str
    parse: Callable[[str], Any]
    render: Callable[[Any], str] = str

    @property
    def is_boolean(self) -> bool:
        """Return whether the flag alone means true."""
        return not self.placeholder


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag; `names[0]` is what the help calls it, the others are spellings that are accepted too."""

    names: tuple[str, ...]
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The flags that were given, each with its last value."""

    values: Mapping[Flag, Any]

    def value(self, flag: Flag, default: Any) -> Any:
        """Return the value given for `flag`, else `default`."""
        return self.values.get(flag, default)


def parse(arguments: Sequence[str], flags: Sequence[Flag]) -> Parsed:
    """Read `arguments` (without the program's name).

    Raises:
        FlagError: An unknown flag, a value that is missing or wrong, or an argument that is not a flag.
    """
    by_name = {name: flag for flag in flags for name in flag.names}
    values: dict[Flag, Any] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, text = _split(argument)
        if (flag := by_name.get(name)) is None:
            raise FlagError(_unknown(name, by_name))
        if not equals and flag.kind.is_boolean:
            text = "true"
        elif not equals:
            if not rest:
                raise FlagError(f"flag --{name} needs a value: --{name}={flag.kind.placeholder}")
            text = rest.pop(0)
        values[flag] = _value(name, flag, text)
    return Parsed(values)


def _split(argument: str) -> tuple[str, str, str]:
    """Return the flag's name, "=" or "", and the text after it."""
    name, equals, text = argument.removeprefix("-").removeprefix("-").partition("=")
    if not argument.startswith("-") or not name or name.startswith("-"):
        raise FlagError(f"unexpected argument {argument!r}: flags look like --name=value; see mpiop --help")
    return name, equals, text


def _value(name: str, flag: Flag, text: str) -> Any:
    try:
        return flag.kind.parse(text)
    except ValueError as error:
        raise FlagError(f"flag --{name} cannot be {text!r}: {error}") from error


def _unknown(name: str, known: Mapping[str, Flag]) -> str:
    import difflib  # noqa: PLC0415 - needed only when something is wrong

    folded = {candidate.lower(): candidate for candidate in known if len(candidate) > 1}
    matches = difflib.get_close_matches(name.lower().replace("_", "-"), folded, n=1)
    hint = f"did you mean --{folded[matches[0]]}?" if matches else "see mpiop --help for all flags"
    return f"there is no flag --{name}; {hint}"


def _parse_bool(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ValueError("it is either true or false")
    return text in _TRUE


def parse_int(text: str) -> int:
    """Read an integer as Go does: `0x`, `0o`, `0b` and a leading 0 (octal) choose the base.

    Raises:
        ValueError: `text` is not an integer.
    """
    try:
        return int(text, 8 if _OLD_OCTAL.fullmatch(text) else 0)
    except ValueError:
        raise ValueError("must be a whole number") from None


def parse_float(text: str) -> float:
    """Read a finite number.

    Raises:
        ValueError: `text` is not a finite number.
    """
    try:
        number = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def parse_duration(text: str) -> float:
    """Read a duration like `15s`, `1m30s` or `500ms` into seconds.

    Raises:
        ValueError: `text` is none, for example for want of a unit.
    """
    if text == "0":
        return 0.0
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("must be a duration with its unit, like 15s, 1m30s or 500ms")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def at_least(minimum: float, kind: Kind) -> Kind:
    """Return `kind` for numbers that are not below `minimum`."""

    def parse_checked(text: str) -> Any:
        if (number := kind.parse(text)) < minimum:
            raise ValueError(f"it must be at least {minimum:g}")
        return number

    return Kind(kind.placeholder, parse_checked, kind.render)


def port() -> Kind:
    """Return the kind of TCP ports; 0 is allowed."""

    def parse_port(text: str) -> int:
        if not 0 <= (number := parse_int(text)) <= 65535:  # noqa: PLR2004 - TCP
            raise ValueError("a port is a number from 0 to 65535")
        return number

    return Kind("PORT", parse_port)


def one_of(*choices: str) -> Kind:
    """Return the kind of texts that are one of `choices`."""

    def parse_choice(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it is one of {', '.join(choices)}")
        return text

    return Kind("|".join(choices), parse_choice)


def text_kind(placeholder: str) -> Kind:
    """Return the kind of any text, shown as `placeholder`."""
    return Kind(placeholder, str)


def parse_names(text: str) -> tuple[str, ...]:
    """Read names that commas separate; each counts once, and "" is none.

    Raises:
        ValueError: One of several names is empty.
    """
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    if "" in names:
        raise ValueError("there must be a name before and after each comma")
    return tuple(dict.fromkeys(names))


BOOLEAN = Kind("", _parse_bool, lambda value: str(value).lower())
INTEGER = Kind("N", parse_int)
NUMBER = Kind("X", parse_float, lambda value: f"{value:g}")
NAMES = Kind("NAME,…", parse_names, ",".join)
DURATION = Kind("DURATION", parse_duration, lambda seconds: f"{seconds:g}s")
