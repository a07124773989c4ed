"""What is measured, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from embedded.simulated import CAPACITY


class Kind(Enum):
    """How a scenario goes."""

    REAL_JOB = auto()
    """One job at a time on a real kubelet."""
    LOAD = auto()
    """Many jobs, or a large one, on simulated nodes."""
    MEMORY = auto()
    """An operator without a job, alone and next to Pods of others."""
    FAILOVER = auto()
    """The leader is asked to stop, and the other replica takes over."""
    STOCK = auto()
    """An operator starts in a cluster that is full of jobs, or empty, and there are some more, at a steady pace."""
    LIBRARIES = auto()
    """One job at a time on a real kubelet with each MPI library, with an sshd of its image and with mpiop-agent."""
    BROKEN = auto()
    """Jobs whose workers no node takes, for two minutes."""
    STEPS = auto()
    """Steps of allocations on a real kubelet, and the same `mpirun` typed in the launcher."""
    SHARES = auto()
    """Many jobs on simulated nodes, and what the operator's processor time is made of."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario.

    Attributes:
        name: What it is called at the command line.
        rounds: How often each operator is measured, by turns; with fewer rounds no goal counts as reached.
        workers: Of each job.
        foreign_pods: Pods of others.
        ended: How many jobs have ended before.
        running: How many jobs run all the time.
        jobs_a_second: How fast jobs come, where that is not at once.
        start_seconds: Within how long the workers of a job start, one by one; 0 is at once.
        write_delay_seconds: By how much an admission webhook delays each write of the objects of jobs.
    """

    name: str
    title: str
    kind: Kind
    rounds: int = 5
    jobs: int = 1
    workers: int = 1
    foreign_pods: int = 0
    ended: int = 0
    running: int = 0
    jobs_a_second: float = 2.0
    start_seconds: int = 0
    write_delay_seconds: float = 0.0

    @property
    def pods(self) -> int:
        """Return how many Pods its jobs have, launchers included."""
        return self.jobs * (self.workers + 1)

    @property
    def nodes(self) -> int:
        """Return how many simulated nodes it takes: ten, or more where these have no room."""
        return max(10, 1 + self.pods // int(CAPACITY["pods"]))

    @property
    def patience_seconds(self) -> float:
        """Return the time after which it counts as hanging: ten times what two quiet cores need."""
        return 120.0 + (0.25 + 10 * self.write_delay_seconds) * self.pods + self.start_seconds


SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario("one-job", "one job on a real kubelet", Kind.REAL_JOB, rounds=20, workers=2),
    Scenario("burst-50x8", "50 jobs with 8 workers", Kind.LOAD, jobs=50, workers=8),
    Scenario("burst-100x4", "100 jobs with 4 workers", Kind.LOAD, jobs=100, workers=4),
    Scenario("one-1000", "one job with 1,000 workers", Kind.LOAD, workers=1000),
    Scenario("slow-20x8", "20 jobs with 8 workers that start over 30 s", Kind.LOAD, jobs=20, workers=8, start_seconds=30),
    Scenario("slow-1x200", "one job with 200 workers that start over 30 s", Kind.LOAD, workers=200, start_seconds=30),
    Scenario("late-20x8", "20 jobs with 8 workers, each write delayed by 50 ms", Kind.LOAD, jobs=20, workers=8, write_delay_seconds=0.05),
    Scenario("broken-10x8", "ten jobs with 8 workers that no node takes", Kind.BROKEN, jobs=10, workers=8),
    Scenario("memory", "memory without a job", Kind.MEMORY, foreign_pods=5000),
    Scenario("failover", "planned failover", Kind.FAILOVER),
)

LARGE: Final[Sequence[Scenario]] = (
    Scenario("stock", "10,000 ended and 2,000 running jobs", Kind.STOCK, rounds=1, jobs=300, workers=4, ended=10_000, running=2_000),
    Scenario("stream", "2.5 jobs with 4 workers a second for 10 minutes", Kind.STOCK, rounds=1, jobs=1_500, workers=4, jobs_a_second=2.5),
    Scenario("one-10000", "one job with 10,000 workers", Kind.LOAD, rounds=1, workers=10_000),
    Scenario("shares", "50 jobs with 8 workers", Kind.SHARES, jobs=50, workers=8),
    Scenario("libraries", "one job on a real kubelet with each MPI library", Kind.LIBRARIES, rounds=10, workers=2),
    Scenario("steps", "steps of an allocation with each MPI library", Kind.STEPS, rounds=10, workers=2),
)
"""Not measured unless they are named: each takes half an hour."""

SMALL: Final[Sequence[Scenario]] = (
    Scenario("small-10x8", "10 jobs with 8 workers", Kind.LOAD, jobs=10, workers=8),
    Scenario("small-slow", "one job with 40 workers that start over 15 s", Kind.LOAD, workers=40, start_seconds=15),
    Scenario("small-stock", "20 ended and 10 running jobs", Kind.STOCK, rounds=1, jobs=4, workers=4, ended=20, running=10),
    Scenario("small-foreign", "2 jobs with 8 workers beside 1,000 Pods of others", Kind.LOAD, jobs=2, workers=8, foreign_pods=1000),
)
"""For `make bench-check`, and for trying things out."""


def find(names: Sequence[str]) -> Sequence[Scenario]:
    """Return the scenarios of those names; without a name, all but the large and the small ones.

    Raises:
        ValueError: There is none of a name.
    """
    known = {scenario.name: scenario for scenario in (*SCENARIOS, *LARGE, *SMALL)}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no scenario {', '.join(unknown)}; the scenarios are {', '.join(known)}")
    return [known[name] for name in names] or SCENARIOS
