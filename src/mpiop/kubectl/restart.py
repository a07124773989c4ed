"""`restart`: deletes a job and creates it again.

Before, a dry run checks that it can be created again. If creating it fails after all, the manifest is printed, so that it is not lost.
"""

import contextlib
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from mpiop.api import constants as c
from mpiop.client.api import Api, Object
from mpiop.client.errors import ClientError, ForbiddenError, NotFoundError, UnreachableError
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.mpi import owner_of
from mpiop.kube.resources import CONFIG_MAPS
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import to_yaml
from mpiop.kubectl.session import Session, cluster_options, confirm

_KEPT = ("labels", "annotations")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_FILES = "files"
"""The volume of `run --upload`."""


@click.command("restart")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@cluster_options()
def restart_verb(session: Session, name: str, *, yes: bool) -> None:
    """Run a job again from the beginning: delete it, and create it again as it was written."""
    api, job = session.api(), session.mpi().get(name)
    if not job.status.is_finished:
        confirm(f"Job {name} is {job.status.state}. What it has done so far is lost.", is_sure=yes)
    again = as_new(job.raw)
    try:
        files = _uploaded(api, job)
        _check(api, again)
    except ClientError as error:
        raise type(error)(f"job {name} was not deleted, since it could not be created again: {error}") from error
    with _printed_on_failure(again):
        if files is not None:
            _set_owners(api, files, _other_owners(files, job))
        job.delete()
        _until_gone(job)
        created = api.create_job(again)
    if files is not None:
        _set_owners(api, files, [*_other_owners(files, job), owner_of(created)])
    click.echo(f"job {name} created again")


def _check(api: Api, job: Object) -> None:
    """Check with the API server that it would create the job. A quota also counts the old one, which still exists."""
    try:
        api.create_job({**job, "metadata": {**_without_name(job), "generateName": "check-"}}, is_dry_run=True)
    except ForbiddenError as error:
        if "exceeded quota" not in str(error):
            raise


def as_new(job: Object) -> Object:
    """Return an MPIJob as its user wrote it, to be created again."""
    metadata = {"name": job["metadata"]["name"], "namespace": job["metadata"]["namespace"]}
    for field in _KEPT:
        if kept := {key: value for key, value in job["metadata"].get(field, {}).items() if key != _APPLIED}:
            metadata[field] = kept
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, "spec": job["spec"]}


def _without_name(job: Object) -> Object:
    return {field: value for field, value in job["metadata"].items() if field != "name"}


def _uploaded(api: Api, job: Job) -> Object | None:
    """Return the ConfigMap of the job's files; None if it has none of its own."""
    volumes = job.raw["spec"]["mpiReplicaSpecs"][c.LAUNCHER]["template"]["spec"].get("volumes") or ()
    name = next((volume["configMap"]["name"] for volume in volumes if volume["name"] == _FILES and "configMap" in volume), None)
    if name is None:
        return None
    config_map = api.get(CONFIG_MAPS.path(job.namespace, name))
    return config_map if len(_other_owners(config_map, job)) < len(_owners(config_map)) else None


def _owners(config_map: Object) -> Sequence[Any]:
    owners: Sequence[Any] = config_map["metadata"].get("ownerReferences") or ()
    return owners


def _other_owners(config_map: Object, job: Job) -> list[Any]:
    return [owner for owner in _owners(config_map) if owner["uid"] != job.raw["metadata"]["uid"]]


def _set_owners(api: Api, config_map: Object, owners: Sequence[Any]) -> None:
    """Set the owners of a ConfigMap, with which it is deleted: without the old job among them, it outlives that."""
    metadata = config_map["metadata"]
    api.patch_config_map(metadata["name"], {"metadata": {"uid": metadata["uid"], "ownerReferences": list(owners)}})


@contextmanager
def _printed_on_failure(job: Object) -> Generator[None]:
    """Print the job if it may be gone, so that it is not lost."""
    try:
        yield
    except (ClientError, KeyboardInterrupt):
        click.echo(to_yaml(job), nl=False)
        name = job["metadata"]["name"]
        click.echo(f"If job {name} is gone, create it again from the lines above: kubectl mpi submit FILE", err=True)
        raise


def _until_gone(job: Job) -> None:
    while True:
        with contextlib.suppress(UnreachableError):
            try:
                job.refresh()
            except NotFoundError:
                return
        time.sleep(POLL_SECONDS)
