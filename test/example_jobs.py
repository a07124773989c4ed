"""MPIJobs for tests: parsed, small, and changed by keyword."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mpiop.api import constants as c
from mpiop.api.annotations import fields_of
from mpiop.api.fields import Fields
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob, ReplicaSpec, RunPolicy
from mpiop.kube.objects import Object

MPIRUN: Mapping[str, Any] = {
    "spec": {"containers": [{"name": "launcher", "image": "example.com/pi", "command": ["mpirun", "/pi"]}]},
}
SSHD: Mapping[str, Any] = {"spec": {"containers": [{"name": "worker", "image": "example.com/pi"}]}}

PI = MPIJob(
    namespace="default",
    name="pi",
    uid="1b671a64-40d5-491e-99b0-da01ff1f3341",
    generation=1,
    raw={"metadata": {"namespace": "default", "name": "pi"}},
    slots_per_worker=1,
    run_launcher_as_worker=False,
    ssh_auth_mount_path=c.DEFAULT_SSH_AUTH_MOUNT_PATH,
    launcher_creation_policy=c.AT_STARTUP,
    mpi_implementation="OpenMPI",
    run_policy=RunPolicy(),
    launcher=ReplicaSpec(1, MPIRUN, c.ON_FAILURE),
    worker=ReplicaSpec(2, SSHD, c.NEVER),
    status=MPIJobStatus(),
)


def with_workers(job: MPIJob, replicas: int) -> MPIJob:
    """Return the job with that many workers; none: without Worker."""
    return replace(job, worker=replace(job.worker, replicas=replicas) if job.worker and replicas else None)


def with_launcher(job: MPIJob, template: Mapping[str, Any]) -> MPIJob:
    """Return the job with another template of the launcher."""
    return replace(job, launcher=replace(job.launcher, template=template))


def with_worker(job: MPIJob, template: Mapping[str, Any]) -> MPIJob:
    """Return the job with another template of the workers."""
    assert job.worker is not None
    return replace(job, worker=replace(job.worker, template=template))


def with_annotations(job: MPIJob, annotations: dict[str, str]) -> MPIJob:
    """Return the job with annotations of its own, of which each sets one field."""
    raw: Object = {"metadata": {"namespace": job.namespace, "name": job.name, "annotations": annotations}}
    return replace(job, raw=raw, **fields_of(Fields(annotations, "metadata.annotations", [])))


def container(**fields: object) -> dict[str, Any]:
    """Return the first container of a template."""
    return {"name": "main", "image": "example.com/pi", **fields}


def template(*containers: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    """Return a pod template with these containers, or one without them, and other fields of its spec."""
    return {"metadata": metadata, "spec": {"containers": list(containers) or [container()], **spec}}
