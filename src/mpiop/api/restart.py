"""The annotations of an MPIJob that say how often it may be restarted, and when."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from mpiop.api import constants as c
from mpiop.api.fields import Fields, invalid, required, unsupported
from mpiop.api.types import RestartPolicy

MOST_RESTARTS: Final = 100
"""The status remembers each restart of the budget."""
_UNIT_SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(\d{1,9})([smhd])")

_Value = TypeVar("_Value")


def restart_policy(annotations: Fields) -> RestartPolicy | None:
    """Return what the annotations of an MPIJob say; None without a budget. What is wrong with one is added to their errors."""
    given = [name for name in c.ANNOTATIONS_OF_RESTARTS if annotations.values.get(name) is not None]
    if not given:
        return None
    if c.ANNOTATION_MAX_RESTARTS not in given:
        path = f"{annotations.path}[{c.ANNOTATION_MAX_RESTARTS}]"
        annotations.errors.append(required(path, f"without it, {given[0]} has no effect"))
        return None
    return RestartPolicy(
        max_restarts=_read(annotations, c.ANNOTATION_MAX_RESTARTS, "0", _count),
        scope=_read(annotations, c.ANNOTATION_RESTART, c.RESTART_FAILED, partial(_one_of, c.RESTART_SCOPES)),
        causes=_read(annotations, c.ANNOTATION_RESTART_ON, c.ON_INFRASTRUCTURE, partial(_one_of, c.RESTART_CAUSES)),
        window_seconds=_read(annotations, c.ANNOTATION_RESTART_WINDOW, "", _window_seconds),
        avoids_failed_nodes=_read(annotations, c.ANNOTATION_AVOID_FAILED_NODES, "false", partial(_one_of, ("true", "false"))) == "true",
    )


def _read(annotations: Fields, name: str, default: str, parse: Callable[[str, str], _Value]) -> _Value:
    """Return the parsed annotation, or the parsed `default` if it is absent or wrong."""
    path = f"{annotations.path}[{name}]"
    try:
        return parse(path, annotations.string(name, default))
    except ValueError as error:
        annotations.errors.append(str(error))
        return parse(path, default)


def _count(path: str, text: str) -> int:
    if re.fullmatch("[0-9]{1,3}", text) and int(text) <= MOST_RESTARTS:
        return int(text)
    raise ValueError(invalid(path, text, f"must be a whole number from 0 to {MOST_RESTARTS}"))


def _one_of(choices: tuple[str, ...], path: str, text: str) -> str:
    if text in choices:
        return text
    raise ValueError(unsupported(path, text, choices))


def _window_seconds(path: str, text: str) -> float | None:
    if not text:
        return None
    parts = _DURATION.findall(text)
    seconds = sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) == text and seconds > 0:
        return float(seconds)
    raise ValueError(invalid(path, text, "must be a duration with its unit, such as 90m, 24h or 7d"))
