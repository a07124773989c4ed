"""The restart policy of a job, which its annotations set."""

from dataclasses import dataclass
from typing import Final

from mpiop.api import annotations as rows
from mpiop.api import constants as c
from mpiop.api.fields import Fields


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When a job is restarted, from its annotations.

    Attributes:
        max_restarts: The budget.
        scope: Which workers are replaced: `Failed` or `All`.
        causes: What leads to a restart: `Infrastructure`, `Any` or `ExitCodes`.
        exit_codes: Launcher exit codes that also trigger a restart.
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
    """Return the policy that annotations of an MPIJob set. Add an error for each that is invalid."""
    if not rows.is_given(annotations, "restart"):
        return NO_BUDGET
    causes, exit_codes = rows.read(annotations, rows.RESTART_ON)
    return RestartPolicy(
        max_restarts=rows.read(annotations, rows.MAX_RESTARTS),
        scope=rows.read(annotations, rows.RESTART),
        causes=causes,
        exit_codes=exit_codes,
        window_seconds=rows.read(annotations, rows.RESTART_WINDOW),
        avoids_failed_nodes=rows.read(annotations, rows.AVOID_FAILED_NODES),
    )
