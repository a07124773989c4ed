"""Which children should exist now: every rule of suspending, waiting, ending and cleaning up, as values."""

from collections.abc import Callable
from dataclasses import dataclass

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import pods
from mpiop.controller.observed import Observed
from mpiop.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Desired:
    """What should be, in terms that `diff` turns into writes.

    Attributes:
        supports: Service, ConfigMap and Secret should exist.
        worker_count: Workers 0 … n-1 should exist; a missing one is made.
        keep_worker: Judges an existing worker pod beyond that range or after the end; False deletes it.
        launcher: The launcher Job should exist; None leaves it as it is, False deletes it.
        launcher_suspended: What its `suspend` should be.
        gate_open: The launcher's pod may be told that no worker is to be waited for.
    """

    supports: bool
    worker_count: int
    keep_worker: Callable[[Object], bool]
    launcher: bool | None
    launcher_suspended: bool
    gate_open: bool


def desired(job: MPIJob, observed: Observed) -> Desired | None:
    """Return what should exist of `job`, or None when nothing may change until the end is recorded."""
    if job.status.is_finished:
        return _after_the_end(job, observed)
    if pods.job_outcome(observed.launcher) is not None or observed.evicted_workers(job) or observed.has_lost_launcher(job):
        return None
    ready = observed.is_ready(job)
    return Desired(
        supports=True,
        worker_count=0 if job.is_suspended else job.worker_replicas,
        keep_worker=_never,
        launcher=_launcher_exists(job, observed, ready=ready),
        launcher_suspended=_launcher_waits(job, observed, ready=ready),
        gate_open=not job.is_suspended and _has_started(job, observed),
    )


def _has_started(job: MPIJob, observed: Observed) -> bool:
    """Tell whether there is nothing to wait for: each worker is Ready, or has ended for good (mpirun says what is amiss then)."""
    return all(pod is not None and (pods.is_ready(pod) or pods.is_finished(pod)) for pod in observed.wanted_workers(job))


def _launcher_exists(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    at_startup = job.launcher_creation_policy == c.AT_STARTUP
    return at_startup or job.is_suspended or observed.launcher is not None or ready


def _launcher_waits(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    """Tell whether the launcher Job should be suspended; once let go it is not held again for a worker that comes back."""
    if job.is_suspended:
        return True
    held = observed.launcher is None or bool(observed.launcher.get("spec", {}).get("suspend"))
    return held and job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY and not ready


def _after_the_end(job: MPIJob, observed: Observed) -> Desired:
    """Return the clean-up by policy; a launcher that is still active stops, one that has ended stays for its log."""
    policy = job.run_policy.clean_pod_policy
    active = observed.launcher is not None and pods.job_outcome(observed.launcher) is None
    return Desired(
        supports=False,
        worker_count=0,
        keep_worker={c.CLEAN_ALL: _never, c.CLEAN_RUNNING: pods.is_finished}.get(policy, _always),
        launcher=policy != c.CLEAN_ALL if active else None,
        launcher_suspended=active,
        gate_open=False,
    )


def _never(_pod: Object) -> bool:
    return False


def _always(_pod: Object) -> bool:
    return True
