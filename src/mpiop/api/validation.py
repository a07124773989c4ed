"""What makes an MPIJob that can be understood one that can be run: the same rules as the CRD's, for objects that slipped past it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotations import SSH
from mpiop.api.fields import duplicate, invalid, required, unsupported
from mpiop.api.mpi_implementations import IMPLEMENTATIONS
from mpiop.api.names import worker_name
from mpiop.api.paths import absolute, overlap
from mpiop.api.size import most_workers
from mpiop.api.types import MPIJob, ReplicaSpec, RunPolicy

CLEAN_POD_POLICIES: Final = (c.CLEAN_NONE, c.CLEAN_RUNNING, c.CLEAN_ALL)
LAUNCHER_CREATION_POLICIES: Final = (c.AT_STARTUP, c.WAIT_FOR_WORKERS_READY)
MANAGERS: Final = (c.MANAGED_BY_US, c.MANAGED_BY_MULTIKUEUE)
RESTART_POLICIES: Final = (c.NEVER, c.ON_FAILURE)

HOST_NAME_CHARACTERS: Final = 63
DNS_1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
MOUNT_PATH: Final = r"(/([^/:.][^/:]*|\.[^/:.][^/:]*|\.\.[^/:]+|\.)?)*"
"""Of a path that begins with '/' and has neither ':' nor a part that is '..'; regular expressions of CEL cannot look ahead."""
MOUNT_PATH_ADVICE: Final = "must be an absolute path, without ':' and '..'"

_REPLICA_SPECS: Final = "spec.mpiReplicaSpecs"


def validate(job: MPIJob) -> tuple[str, ...]:
    """Return one line for each field that is wrong, with its path and what to do about it; none for a job that can be run."""
    errors = [*_name_errors(job), *_spec_errors(job), *_ssh_errors(job), *_run_policy_errors(job.run_policy)]
    errors += _replica_errors(c.LAUNCHER, job.launcher)
    if job.launcher.replicas != 1:
        path = f"{_REPLICA_SPECS}.{c.LAUNCHER}.replicas"
        errors.append(invalid(path, job.launcher.replicas, "must be 1: a job has one launcher; set the number of pods at Worker.replicas"))
    if job.worker is not None:
        errors += [*_replica_errors(c.WORKER, job.worker), *_worker_count_errors(job, job.worker.replicas)]
    return tuple(errors)


def _name_errors(job: MPIJob) -> Iterator[str]:
    """The longest host name of the job's pods must be a DNS label; `-launcher` is as long as the end of worker 0's name."""
    longest = worker_name(job.name, max(job.worker_replicas, 1) - 1)
    if not re.fullmatch(DNS_1035_LABEL, longest):
        advice = "must be lower-case letters, digits and '-', beginning with a letter: its pods and its Service are named after it"
        yield invalid("metadata.name", job.name, advice)
    excess = len(longest) - HOST_NAME_CHARACTERS
    if excess > 0:
        advice = f"too long by {excess}: the host name {longest} of a worker may have at most {HOST_NAME_CHARACTERS} characters"
        yield invalid("metadata.name", job.name, advice)


def _spec_errors(job: MPIJob) -> Iterator[str]:
    yield from _at_least_zero({"spec.slotsPerWorker": job.slots_per_worker})
    if not re.fullmatch(MOUNT_PATH, job.ssh_auth_mount_path):
        yield invalid("spec.sshAuthMountPath", job.ssh_auth_mount_path, MOUNT_PATH_ADVICE)
    yield from _one_of("spec.launcherCreationPolicy", job.launcher_creation_policy, LAUNCHER_CREATION_POLICIES)
    yield from _one_of("spec.mpiImplementation", job.mpi_implementation, tuple(IMPLEMENTATIONS))


def _ssh_errors(job: MPIJob) -> Iterator[str]:
    """Yield the mounts that would cover what injected ssh brings."""
    if job.ssh != c.SSH_INJECTED:
        return
    for role, spec in ((c.LAUNCHER, job.launcher), (c.WORKER, job.worker)):
        if spec is not None:
            yield from _covered(f"{_REPLICA_SPECS}.{role}.template.spec.containers[0].volumeMounts", spec)


def _covered(path: str, replica_spec: ReplicaSpec) -> Iterator[str]:
    spec: Mapping[str, Any] = replica_spec.template.get("spec") or {}
    containers: Sequence[Mapping[str, Any]] = spec.get("containers") or ()
    mounts: Sequence[Mapping[str, Any]] = (containers[0].get("volumeMounts") if containers else None) or ()
    for index, mount in enumerate(mounts):
        mounted = absolute(mount.get("mountPath", ""))
        if covered := [folder for folder in c.AGENT_FOLDERS if overlap(mounted, folder)]:
            advice = f"needs {covered[0]} for the operator's ssh, where {path}[{index}] mounts {mounted}"
            yield invalid(f"metadata.annotations[{SSH.name}]", c.SSH_INJECTED, advice)


def _run_policy_errors(policy: RunPolicy) -> Iterator[str]:
    path = "spec.runPolicy"
    yield from _one_of(f"{path}.cleanPodPolicy", policy.clean_pod_policy, CLEAN_POD_POLICIES)
    numbers = {
        f"{path}.ttlSecondsAfterFinished": policy.ttl_seconds_after_finished,
        f"{path}.activeDeadlineSeconds": policy.active_deadline_seconds,
        f"{path}.backoffLimit": policy.backoff_limit,
    }
    if policy.scheduling_policy is not None:
        numbers[f"{path}.schedulingPolicy.minAvailable"] = policy.scheduling_policy.min_available
        numbers[f"{path}.schedulingPolicy.scheduleTimeoutSeconds"] = policy.scheduling_policy.schedule_timeout_seconds
    yield from _at_least_zero(numbers)
    if policy.managed_by is not None:
        yield from _one_of(f"{path}.managedBy", policy.managed_by, MANAGERS)


def _replica_errors(role: str, replica_spec: ReplicaSpec) -> Iterator[str]:
    path = f"{_REPLICA_SPECS}.{role}"
    yield from _one_of(f"{path}.restartPolicy", replica_spec.restart_policy, RESTART_POLICIES)
    spec: Mapping[str, Any] = replica_spec.template.get("spec") or {}
    containers: Sequence[Mapping[str, Any]] = spec.get("containers") or ()
    path = f"{path}.template.spec.containers"
    if not containers:
        what = "whose first one runs mpirun" if role == c.LAUNCHER else "whose first one runs sshd"
        yield required(path, f"must have at least one container, {what}")
    seen: set[str] = set()
    for index, container in enumerate(containers):
        if container["name"] in seen:
            yield duplicate(f"{path}[{index}].name", container["name"])
        seen.add(container["name"])


def _worker_count_errors(job: MPIJob, count: int) -> Iterator[str]:
    path = f"{_REPLICA_SPECS}.{c.WORKER}.replicas"
    if count < 1:
        yield invalid(path, count, "must be at least 1; leave Worker out for a launcher on its own")
    elif count > (most := most_workers(job.name, job.namespace)):
        advice = f"must be at most {most}: the host names of more workers do not fit into a ConfigMap; shorter names leave room for more"
        yield invalid(path, count, advice)


def _at_least_zero(numbers: Mapping[str, int | None]) -> Iterator[str]:
    for path, number in numbers.items():
        if number is not None and number < 0:
            yield invalid(path, number, "must be 0 or more")


def _one_of(path: str, value: str, supported: tuple[str, ...]) -> Iterator[str]:
    if value not in supported:
        yield unsupported(path, value, supported)
