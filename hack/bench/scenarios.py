"""What is measured, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

LEVELS: Final = (8, 16, 32)
"""How many requests of the floor are under way at a time; the best of the three counts."""


class Kind(Enum):
    """How a scenario goes."""

    LOAD = auto()
    """Jobs come; beside it the floor: the same objects made by a client that need not think."""
    RESTART = auto()
    """The operator starts when the jobs are there already."""
    FAILOVER = auto()
    """The leader ends, and another replica takes over."""
    START = auto()
    """The operator starts and runs a first job to its end."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario.

    Attributes:
        name: What it is called at the command line.
        workers: Of each job.
        rate: Jobs a second; 0 is all at once.
        foreign_pods: Pods of other people in the cluster.
        foreign_changes: Changes of theirs a second.
        launcher_seconds: How long each launcher runs.
        rounds: How often everything is measured, by turns.
    """

    name: str
    title: str
    jobs: int
    workers: int
    kind: Kind = Kind.LOAD
    rate: float = 0.0
    foreign_pods: int = 0
    foreign_changes: float = 0.0
    launcher_seconds: float = 1.0
    rounds: int = 1

    @property
    def pods(self) -> int:
        """Return how many pods its jobs have, launchers included."""
        return self.jobs * (self.workers + 1)

    @property
    def arrival_seconds(self) -> float:
        """Return over how long its jobs come."""
        return self.jobs / self.rate if self.rate else 0.0

    @property
    def patience_seconds(self) -> float:
        """Return after how long it will not come to an end any more: on two quiet cores, a tenth of it is usual."""
        return 120.0 + 0.25 * self.pods + self.arrival_seconds


SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario("burst-50x8", "burst of 50 jobs with 8 workers", 50, 8, rounds=5),
    Scenario("burst-100x4", "burst of 100 jobs with 4 workers", 100, 4, rounds=5),
    Scenario("one-1000", "one job with 1,000 workers", 1, 1000, rounds=3),
    Scenario("one-5000", "one job with 5,000 workers", 1, 5000),
    Scenario("stream-500x2", "500 jobs with 2 workers, 20 a second", 500, 2, rate=20.0),
    Scenario("foreign-20x8", "20 jobs with 8 workers beside 10,000 foreign Pods", 20, 8, foreign_pods=10_000, foreign_changes=200.0),
    Scenario("restart-1000", "start with 1,000 jobs that run", 1000, 1, Kind.RESTART, launcher_seconds=36_000.0),
    Scenario("failover", "another replica takes over", 1, 1, Kind.FAILOVER),
    Scenario("first-job", "start to the end of a first job", 1, 1, Kind.START, launcher_seconds=3.0),
)

SMALL: Final[Sequence[Scenario]] = (
    Scenario("small-10x8", "burst of 10 jobs with 8 workers", 10, 8),
    Scenario("small-foreign", "2 jobs with 8 workers beside 1,000 foreign Pods", 2, 8, foreign_pods=1000, foreign_changes=20.0),
)
"""For trying things out, and for the check of counts."""


def find(names: Sequence[str]) -> Sequence[Scenario]:
    """Return the scenarios of those names; of none, all but the small ones.

    Raises:
        ValueError: There is none of a name.
    """
    known = {scenario.name: scenario for scenario in (*SCENARIOS, *SMALL)}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no scenario {', '.join(unknown)}: there are {', '.join(known)}")
    return [known[name] for name in names] or SCENARIOS
