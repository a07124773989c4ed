"""Which children of a job should exist while it has not ended; `clean_up` says it for later."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.suspension import should_suspend_launcher
from mpiop.controller.restart.attempt import Beginning, LauncherAttempt
from mpiop.controller.restart.plan import replacement_rule, seconds_too_young
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


def desired_state(attempt: LauncherAttempt, now: datetime) -> Desired | None:
    """Return the desired children of a job that has not ended; None while its end is not recorded, when nothing may change."""
    job, observed = attempt.job, attempt.observed
    if pods.job_outcome(observed.launcher) is not None or observed.evicted_workers(job) or observed.has_lost_launcher(job):
        return None
    ready = observed.is_ready(job)
    is_outdated = observed.has_outdated_launcher(job)
    waits = observed.awaits_old_gang
    must_replace = replacement_rule(job, observed)
    must_go = is_outdated and pods.is_suspension_complete(observed.launcher)
    has_launcher = _launcher_exists(job, observed, ready=ready) and not must_go
    return Desired(
        dependencies=Presence.ENSURE,
        worker_count=0 if job.is_suspended or waits else job.worker_replicas,
        keep_worker=always if waits and not job.is_suspended else never,
        replace_worker=lambda worker: must_replace(worker) and not seconds_too_young(worker, now),
        forces=job.restart.has_budget and not job.is_suspended,
        launcher=Presence.ENSURE if has_launcher else Presence.DELETE,
        launcher_suspended=is_outdated or should_suspend_launcher(job, observed, ready=ready),
        gang=Presence.DELETE if job.is_suspended else Presence.ENSURE,
        beginning=attempt.beginning_to_note,
    )


def _launcher_exists(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    at_startup = job.launcher_creation_policy == c.AT_STARTUP
    return at_startup or job.is_suspended or observed.launcher is not None or ready


def never(_pod: Object) -> bool:
    """Keep, or replace, no Pod."""
    return False


def always(_pod: Object) -> bool:
    """Keep every Pod."""
    return True
