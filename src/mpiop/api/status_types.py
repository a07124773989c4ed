"""The status of an MPIJob as frozen dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mpiop.api import constants as c


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of the status; `status` is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str
    message: str
    last_update_time: datetime
    last_transition_time: datetime

    @property
    def is_true(self) -> bool:
        """Return whether the condition holds."""
        return self.status == "True"

    @property
    def since(self) -> datetime:
        """Return when `status` changed last; the name that users of `mpiop.client` know."""
        return self.last_transition_time


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """Pods of one role, counted by phase."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """What `kubectl get mpijobs` shows.

    Attributes:
        state: In one word.
        workers: `running/desired`.
        duration: How long the job took.
        restarts: How often the operator has restarted the job.
        attempts: How many attempts of the launcher have failed; "" if none.
        message: Of the condition that reports what is wrong.
        node: Of the launcher, once the job runs.
        slots: MPI processes on each worker.
    """

    state: str = ""
    workers: str = ""
    duration: str = ""
    restarts: str = ""
    attempts: str = ""
    message: str = ""
    node: str = ""
    slots: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed attempt of the launcher.

    Attributes:
        number: Counted from 1 since the job was started.
        pod: Name of its Pod.
        node: On which it ran, or "".
        started: When its container started; None if that is not known.
        ended: When its container ended.
        exit_code: Of its container.
        reason: In one word, for example OOMKilled.
    """

    number: int
    pod: str
    node: str
    started: datetime | None
    ended: datetime
    exit_code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """How a pod of the launcher failed.

    Attributes:
        reason: In one word.
        message: Which pod, container, exit code and message.
        log: The end of the container's log; "" if the operator may not read it. The same failure with another log is the same failure.
        cause: Why it failed, in a sentence, or "" if only its exit code is known.
    """

    reason: str
    message: str
    log: str = field(default="", compare=False)
    cause: str = ""

    def is_same(self, other: "Failure | None") -> bool:
        """Return whether both are about the same end; of one of them more may be known."""
        return other is not None and (self.reason, self.message) == (other.reason, other.message)


@dataclass(frozen=True, slots=True)
class LostWorker:
    """A worker that was lost while an attempt of the launcher ran.

    Attributes:
        pod: Its name.
        node: On which it ran, or "" if that is not known.
        reason: Why, in one word, for example NodeLost.
        message: Why, for people.
        time: When that was seen.
        attempt: The attempt of the launcher, as `<launcher pod>/<restarts of its container>`.
    """

    pod: str
    node: str
    reason: str
    message: str
    time: datetime
    attempt: str


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart: the operator suspended the launcher Job, replaced what was lost, and resumed the Job.

    Attributes:
        number: Counted from 1 since the job was created.
        time: When it was decided.
        reason: Why, in one word, for example NodeLost.
        message: Why, for people.
        launcher_pods: Names of the launcher pods that failed, or were stopped, because of it.
        failed_nodes: Nodes that were lost, or evict their pods.
    """

    number: int
    time: datetime
    reason: str
    message: str
    launcher_pods: tuple[str, ...] = ()
    failed_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MPIJobStatus:
    """Status of the job as stored; conditions keep their order.

    Attributes:
        observed_generation: Generation that the status of a waiting job describes; -1 before any operator has seen the job; else 0.
        failed_nodes: Nodes on which the job must not run again, the newest last; empty if its annotations do not ask for it.
        restarts: How many restarts were decided since the job was created; the number of the last of `last_restarts`.
    """

    conditions: tuple[Condition, ...] = ()
    replica_statuses: Mapping[str, ReplicaStatus] = field(default_factory=dict[str, ReplicaStatus])
    start_time: datetime | None = None
    completion_time: datetime | None = None
    last_failure: Failure | None = None
    attempts: tuple[Attempt, ...] = ()
    lost_worker: LostWorker | None = None
    restarts: int = 0
    last_restarts: tuple[Restart, ...] = ()
    failed_nodes: tuple[str, ...] = ()
    summary: Summary = Summary()
    observed_generation: int = 0

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type."""
        for condition in self.conditions:  # each sync asks some thirty times, and a generator would cost three times as much
            if condition.type == type_:
                return condition
        return None

    def true_condition(self, type_: str) -> Condition | None:
        """Return the condition of that type if it is True."""
        condition = self.condition(type_)
        return condition if condition is not None and condition.is_true else None

    def is_true(self, type_: str) -> bool:
        """Return whether the condition of that type is there and True."""
        return self.true_condition(type_) is not None

    @property
    def stopped_launcher_pods(self) -> frozenset[str]:
        """Return the names of the launcher pods that the last restarts explain: their failures are not the program's."""
        return frozenset(name for restart in self.last_restarts for name in restart.launcher_pods)

    @property
    def duration(self) -> timedelta | None:
        """Return how long the job took; None before it has ended, or if it ended without a start."""
        return self.completion_time - self.start_time if self.start_time and self.completion_time else None

    @property
    def is_finished(self) -> bool:
        """Return whether the job has Succeeded or Failed."""
        return self.is_true(c.CONDITION_SUCCEEDED) or self.is_true(c.CONDITION_FAILED)

    @property
    def is_finished_by_go_operator(self) -> bool:
        """Return whether the Go operator finished the job before we saw it: the number of workers is then unknown, and left out."""
        return self.is_finished and not self.summary.workers
