"""Which children of a job should exist until it ends; `clean_up` has those of an ended job."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from mpiop.api import constants as c
from mpiop.controller.observe import pods
from mpiop.controller.plan.suspension import should_suspend_launcher
from mpiop.controller.restart.attempt import Beginning, LauncherAttempt
from mpiop.controller.restart.plan import replacement_rule, seconds_to_replacement, seconds_too_young
from mpiop.kube.objects import Object


class Presence(Enum):
    """Whether an object should exist."""

    ENSURE = auto()
    KEEP = auto()
    """As it is: it is neither created, nor changed, nor deleted."""
    DELETE = auto()


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired children, in terms that `diff` turns into writes.

    Attributes:
        dependencies: Of Service, ConfigMap and Secret.
        worker_count: Workers 0 … n-1 should exist; missing ones are created.
        keep_worker: Decides on an existing worker outside that range; False deletes it.
        replace_worker: Decides on an existing worker of that range; True deletes it, and it is created again.
        forces: Whether pods that must go and whose nodes do not answer are deleted without asking the node.
        launcher: Of the launcher Job.
        launcher_suspended: Its desired `suspend`.
        gang: Of the objects of gang scheduling, if it is on.
        beginning: What the launcher pod should note when addresses are published to it; None leaves it as it is.
        next_seconds: Until another worker is to be replaced although no object changes; None if there is none.
    """

    dependencies: Presence
    worker_count: int
    keep_worker: Callable[[Object], bool]
    replace_worker: Callable[[Object], bool]
    forces: bool
    launcher: Presence
    launcher_suspended: bool
    gang: Presence
    beginning: Beginning | None = None
    next_seconds: float | None = None


def desired_state(attempt: LauncherAttempt, now: datetime) -> Desired | None:
    """Return the desired children of a job that has not ended; None while its end is not recorded, when nothing may change."""
    job, observed = attempt.job, attempt.observed
    if pods.job_outcome(observed.launcher) is not None or attempt.evicted_workers or attempt.has_lost_launcher:
        return None
    is_outdated = attempt.has_outdated_launcher
    waits = observed.awaits_old_gang
    must_replace = replacement_rule(attempt)
    must_go = is_outdated and pods.is_suspension_complete(observed.launcher)
    may_exist = job.launcher_creation_policy == c.AT_STARTUP or job.is_suspended or attempt.has_ready_workers
    has_launcher = (may_exist or observed.launcher is not None) and not must_go
    return Desired(
        dependencies=Presence.ENSURE,
        worker_count=0 if job.is_suspended or waits else job.worker_replicas,
        keep_worker=always if waits and not job.is_suspended else never,
        replace_worker=lambda worker: must_replace(worker) and not seconds_too_young(worker, now),
        forces=job.restart.has_budget and not job.is_suspended,
        launcher=Presence.ENSURE if has_launcher else Presence.DELETE,
        launcher_suspended=is_outdated or should_suspend_launcher(attempt),
        gang=Presence.DELETE if job.is_suspended else Presence.ENSURE,
        beginning=attempt.beginning_to_note,
        next_seconds=seconds_to_replacement(filter(None, map(observed.workers.get, job.worker_names)), must_replace, now),
    )


def never(_pod: Object) -> bool:
    """Keep, or replace, no Pod."""
    return False


def always(_pod: Object) -> bool:
    """Keep every Pod."""
    return True
