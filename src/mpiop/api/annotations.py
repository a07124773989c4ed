"""Reading annotations of an MPIJob, which are text, each with a form of its own."""

from collections.abc import Callable
from typing import Final, TypeVar

from mpiop.api.durations import parse_duration
from mpiop.api.fields import Fields, invalid, unsupported

_MOST_DAYS: Final = 365

_Value = TypeVar("_Value")


def read(annotations: Fields, name: str, default: str, parse: Callable[[str, str], _Value]) -> _Value:
    """Return the parsed annotation, or the parsed `default` if it is absent or wrong; what is wrong is added to their errors."""
    path = path_of(annotations, name)
    try:
        return parse(path, annotations.string(name, default))
    except ValueError as error:
        annotations.errors.append(str(error))
        return parse(path, default)


def path_of(annotations: Fields, name: str) -> str:
    """Return the path of an annotation, for messages."""
    return f"{annotations.path}[{name}]"


def one_of(choices: tuple[str, ...], path: str, text: str) -> str:
    """Return `text` if it is one of `choices`; else raise ValueError."""
    if text in choices:
        return text
    raise ValueError(unsupported(path, text, choices))


def duration_seconds(path: str, text: str) -> int:
    """Return the seconds of a duration of more than none and at most a year, such as 90m or 1d12h; else raise ValueError."""
    seconds = parse_duration(text)
    if seconds is not None and 0 < seconds <= _MOST_DAYS * 86400:
        return seconds
    raise ValueError(invalid(path, text, f"must be a duration with its unit, such as 90m, 24h or 7d, and at most {_MOST_DAYS}d"))
