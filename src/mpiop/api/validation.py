"""What makes an MPIJob that can be understood one that can be run: the same rules as the CRD's, for objects that slipped past it.

Rules of single fields are in `spec_fields`; here are those of replica specs, of names, and of several fields together.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotations import SSH
from mpiop.api.fields import duplicate, invalid, required
from mpiop.api.most_workers import most_workers
from mpiop.api.names import worker_name
from mpiop.api.paths import absolute, overlap
from mpiop.api.spec_field import Choice
from mpiop.api.spec_fields import RUN_POLICY, SCHEDULING_POLICY, SPEC, field_errors
from mpiop.api.types import MPIJob, ReplicaSpec, RunPolicy

RESTART_POLICIES: Final = Choice((c.NEVER, c.ON_FAILURE))

HOST_NAME_CHARACTERS: Final = 63
DNS_1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_REPLICA_SPECS: Final = "spec.mpiReplicaSpecs"


def validate(job: MPIJob) -> tuple[str, ...]:
    """Return one line for each field that is wrong, with its path and what to do about it; none for a job that can be run."""
    errors = [*_name_errors(job), *field_errors(SPEC, job), *_ssh_errors(job), *_run_policy_errors(job.run_policy)]
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
    yield from field_errors(RUN_POLICY, policy)
    if policy.scheduling_policy is not None:
        yield from field_errors(SCHEDULING_POLICY, policy.scheduling_policy)


def _replica_errors(role: str, replica_spec: ReplicaSpec) -> Iterator[str]:
    path = f"{_REPLICA_SPECS}.{role}"
    yield from RESTART_POLICIES.errors(f"{path}.restartPolicy", replica_spec.restart_policy)
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
