"""The annotations of an MPIJob that say how often it may be restarted, and when."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from mpiop.api import constants as c
from mpiop.api.annotations import duration_seconds, one_of, path_of, read
from mpiop.api.fields import Fields, invalid, unsupported

MOST_RESTARTS: Final = 100
"""The status remembers each restart of the budget."""
_MOST_EXIT_CODE: Final = 255


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """What the annotations say about restarts of a job.

    Attributes:
        max_restarts: The budget.
        scope: Which workers are replaced: `Failed` or `All`.
        causes: What leads to a restart: `Infrastructure`, `Any` or `ExitCodes`.
        exit_codes: Of the launcher, which lead to one as well as infrastructure does.
        window_seconds: The time in which the budget may be used up; None is the job's whole life.
        avoids_failed_nodes: Whether pods are kept off nodes that failed.
        has_budget: Whether the user set a budget, which may be 0.
    """

    max_restarts: int
    scope: str = c.RESTART_FAILED
    causes: str = c.ON_INFRASTRUCTURE
    exit_codes: frozenset[int] = frozenset()
    window_seconds: float | None = None
    avoids_failed_nodes: bool = False
    has_budget: bool = True


NO_BUDGET: Final = RestartPolicy(max_restarts=0, has_budget=False)
"""Of a job whose annotations ask for no restarts."""


def restart_policy(annotations: Fields) -> RestartPolicy:
    """Return what the annotations of an MPIJob say. What is wrong with one is added to their errors."""
    given = [name for name in c.ANNOTATIONS_OF_RESTARTS if annotations.values.get(name) is not None]
    if not given:
        return NO_BUDGET
    if c.ANNOTATION_MAX_RESTARTS not in given:
        advice = f"has no effect without {c.ANNOTATION_MAX_RESTARTS}"
        annotations.errors += [invalid(path_of(annotations, name), annotations.values[name], advice) for name in given]
        return NO_BUDGET
    causes, exit_codes = read(annotations, c.ANNOTATION_RESTART_ON, c.ON_INFRASTRUCTURE, _causes)
    return RestartPolicy(
        max_restarts=read(annotations, c.ANNOTATION_MAX_RESTARTS, "0", _count),
        scope=read(annotations, c.ANNOTATION_RESTART, c.RESTART_FAILED, partial(one_of, c.RESTART_SCOPES)),
        causes=causes,
        exit_codes=exit_codes,
        window_seconds=read(annotations, c.ANNOTATION_RESTART_WINDOW, "", _window_seconds),
        avoids_failed_nodes=read(annotations, c.ANNOTATION_AVOID_FAILED_NODES, "false", partial(one_of, ("true", "false"))) == "true",
    )


def _count(path: str, text: str) -> int:
    if re.fullmatch("[0-9]{1,3}", text) and int(text) <= MOST_RESTARTS:
        return int(text)
    raise ValueError(invalid(path, text, f"must be a whole number from 0 to {MOST_RESTARTS}"))


def _causes(path: str, text: str) -> tuple[str, frozenset[int]]:
    name, has_codes, codes = text.partition("=")
    if name == c.ON_EXIT_CODES and has_codes:
        found = [int(code) if re.fullmatch("[0-9]{1,3}", code) else 0 for code in codes.split(",")]
        if all(1 <= code <= _MOST_EXIT_CODE for code in found):
            return name, frozenset(found)
        raise ValueError(invalid(path, text, f"must be exit codes from 1 to {_MOST_EXIT_CODE}, such as ExitCodes=3,42"))
    if text in {c.ON_INFRASTRUCTURE, c.ON_ANY}:
        return text, frozenset()
    raise ValueError(unsupported(path, text, (c.ON_INFRASTRUCTURE, c.ON_ANY, f"{c.ON_EXIT_CODES}=<codes>")))


def _window_seconds(path: str, text: str) -> float | None:
    return float(duration_seconds(path, text)) if text else None
