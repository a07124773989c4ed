"""The Job that runs the launcher."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.fields import INT32_MAX
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions, binding, injected_ssh, ssh_script
from mpiop.controller.objects import mpi_implementations as implementations
from mpiop.controller.objects import pod_template as pt
from mpiop.controller.objects.mpi_implementations import CONFIG_MOUNT_PATH, DISCOVER_HOSTS, HOSTFILE
from mpiop.controller.objects.revision import launcher_revision, start_revision
from mpiop.kube.objects import Object

CONFIG_VOLUME: Final = "mpi-job-config"
LEAST_TTL_SECONDS: Final = 600
"""The least TTL of a launcher Job: a failover is shorter, so its end is recorded before the Job is deleted."""


DEFAULT_BACKOFF_LIMIT: Final = 6
"""Of a Job without one. Source: kubernetes pkg/apis/batch/v1/defaults.go."""
RESTART_COUNT_VARIABLE: Final = "MPIOP_RESTART_COUNT"
_SPARE_TRIES: Final = 2
"""How often a launcher can fail before the operator suspends its Job: the Job controller counts a restarted container at once."""


def build_launcher_job(job: MPIJob, options: BuildOptions, *, suspend: bool) -> Object:
    """Return the launcher Job.

    Args:
        job: Whose run policy is passed on.
        options: For cluster domain and scheduler.
        suspend: Whether the Job must not make its pod yet.
    """
    metadata = names.child_metadata(job, names.launcher_name(job))
    metadata["annotations"] = dict(revisions(job))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            **{name: value for name, value in limits(job).items() if value is not None},
            # One launcher at a time: another only when the one before has ended, not when it begins to.
            "podReplacementPolicy": "Failed",
            "suspend": suspend,
            "template": build_launcher_template(job, options),
        },
    }


def limits(job: MPIJob) -> Mapping[str, int | None]:
    """Return the fields of the launcher Job that come from the run policy; None leaves a field to the API server.

    At the user's time to live we delete the Job ourselves; its own is for when no operator runs.
    """
    policy = job.run_policy
    ttl = policy.ttl_seconds_after_finished
    return {
        "ttlSecondsAfterFinished": None if ttl is None else max(ttl, LEAST_TTL_SECONDS),
        "activeDeadlineSeconds": _deadline_seconds(job),
        "backoffLimit": _backoff_limit(job),
    }


def user_backoff_limit(job: MPIJob) -> int:
    """Return how often the program may fail: the user's `backoffLimit`, or the API server's default."""
    limit = job.run_policy.backoff_limit
    return DEFAULT_BACKOFF_LIMIT if limit is None else limit


def _backoff_limit(job: MPIJob) -> int | None:
    """Return the `backoffLimit` of the launcher Job; None leaves it to the API server.

    A launcher may fail before its loss is known, and the Job controller counts that. So a job with a budget of restarts gets more, and the
    operator sees to it that failures of the program alone do not exceed the user's (`controller/status/restarts.py`). Without a budget, a
    restart is one of the retries.
    """
    status = job.status
    if not job.restart.has_budget:
        return max(0, user_backoff_limit(job) - status.restarts) if status.restarts else job.run_policy.backoff_limit
    forgotten = status.restarts - len(status.last_restarts)
    explained = sum(max(1, len(restart.launcher_pods)) for restart in status.last_restarts)
    return min(user_backoff_limit(job) + forgotten + explained + _SPARE_TRIES, INT32_MAX)


def _deadline_seconds(job: MPIJob) -> int | None:
    """Return `activeDeadlineSeconds`, less what the attempts before the last restart took: the Job controller counts from each resume."""
    restarts = job.status.last_restarts
    left = seconds_to_deadline(job, restarts[-1].time) if restarts else None
    return job.run_policy.active_deadline_seconds if left is None else max(1, left)


def seconds_to_deadline(job: MPIJob, now: datetime) -> int | None:
    """Return what is left of `activeDeadlineSeconds` in a run that was restarted; None if the Job controller sees to it alone.

    The Job controller does not count while a restart waits. The deadline begins with the job, or with a launcher that is created later.
    """
    deadline, status = job.run_policy.active_deadline_seconds, job.status
    running = status.true_condition(c.CONDITION_RUNNING)
    began = status.start_time
    if job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY:
        began = running.last_transition_time if running else None
    if deadline is None or began is None or job.is_resuming or not status.last_restarts or status.last_restarts[-1].time < began:
        return None
    return deadline - int((now - began).total_seconds())


def revisions(job: MPIJob) -> Mapping[str, str]:
    """Return the annotations of the launcher Job with the revisions of its MPIJob."""
    return {
        names.ANNOTATION_LAUNCHER_REVISION: launcher_revision(job),
        names.ANNOTATION_START_REVISION: start_revision(job),
        names.ANNOTATION_START_GENERATION: str(job.generation),
    }


def build_launcher_template(job: MPIJob, options: BuildOptions) -> pt.Template:
    """Return the pod template of the launcher Job."""
    template = pt.copied_template(job.launcher)
    # The Job controller does not hand it on; programs that read the template find it there, as in the reference's.
    template["metadata"]["ownerReferences"] = [names.owner_reference(job)]
    pt.apply_identity(template, job, names.launcher_name(job), names.pod_labels(job, c.ROLE_LAUNCHER))
    template["spec"]["restartPolicy"] = job.launcher.restart_policy
    container = pt.first_container(template)
    additions = {
        **implementations.launcher_additions(job),
        **ssh_script.script_environment(job),
        **injected_ssh.launcher_environment(job, options),
        **binding.launcher_environment(job, options),
    }
    pt.add_environment(container, {pt.ROLE_VARIABLE: c.ROLE_LAUNCHER, **implementations.launcher_environment(job)})
    pt.add_defaults(container, additions)
    if not job.run_launcher_as_worker:
        pt.override_environment(container, pt.NO_GPU)
    pt.apply_ssh_keys(template, job)
    pt.apply_failed_nodes(template, job)
    _apply_config(template, job)
    pt.apply_shared_memory(template, job)
    pt.apply_gang(template, job, options)
    ssh_script.apply_script(template, job, options, is_launcher=True)
    injected_ssh.apply_program(template, job, options)
    injected_ssh.apply_checkpoint(template, job, options, ssh_script.checkpoint_flags(job))
    _apply_restart_count(template, job)
    return template


def _apply_restart_count(template: pt.Template, job: MPIJob) -> None:
    """Note for which restart the pod is made. A template that was copied from a pod must not tell of another job's."""
    annotations = template["metadata"]["annotations"]
    for name in (names.ANNOTATION_BEGAN_WITH, names.ANNOTATION_RESTART_COUNT):
        annotations.pop(name, None)
    if job.restart.has_budget or job.status.restarts:
        annotations[names.ANNOTATION_RESTART_COUNT] = str(job.status.restarts)
    if job.restart.has_budget:
        # A variable cannot change in the template of a Job, but an annotation can while the Job is suspended.
        source = {"fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_RESTART_COUNT}']"}}
        pt.add_variable(pt.first_container(template), {"name": RESTART_COUNT_VARIABLE, "valueFrom": source})


def _apply_config(template: pt.Template, job: MPIJob) -> None:
    """Mount hostfile and discover_hosts.sh at `/etc/mpi`."""
    files = [
        {"key": HOSTFILE, "path": HOSTFILE, "mode": 0o444},
        {"key": DISCOVER_HOSTS, "path": DISCOVER_HOSTS, "mode": 0o555},
    ]
    pt.add_volume(template["spec"], {"name": CONFIG_VOLUME, "configMap": {"name": names.config_map_name(job), "items": files}})
    pt.add_mount(pt.first_container(template), {"name": CONFIG_VOLUME, "mountPath": CONFIG_MOUNT_PATH})
