"""`scale`, `suspend`, `resume`, `delete` and `cleanup`."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from mpiop.api import constants as c
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.job import Job
from mpiop.client.progress import desired_workers
from mpiop.client.status import TERMINATING, created_at
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.inputs import seconds_of
from mpiop.kubectl.output import age, counted, print_table
from mpiop.kubectl.queues import has_kueue
from mpiop.kubectl.session import Session, cluster_options, confirm

_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
_job = click.argument("name", metavar="JOB", shell_complete=complete_job)


@click.command("scale")
@_job
@click.argument("workers", type=click.IntRange(min=1))
@_yes
@cluster_options()
def scale_verb(session: Session, name: str, *, workers: int, yes: bool) -> None:
    """Change the number of workers."""
    job = session.mpi().get(name)
    desired = desired_workers(job.raw)
    _check_change(job, f"it has {counted(workers, 'worker')} already" if workers == desired else "")
    if workers < desired:
        confirm(f"This ends {desired - workers} of {desired} workers of job {name}, with what runs on them.", is_sure=yes)
    job.scale(workers)
    click.echo(f"job {name}: {counted(workers, 'worker')}")


@click.command("suspend")
@_job
@_yes
@cluster_options()
def suspend_verb(session: Session, name: str, *, yes: bool) -> None:
    """Release the Pods and GPUs of a job. When it is resumed, it starts again from the beginning."""
    job = session.mpi().get(name)
    _check_change(job, f"it is {job.status.state} already" if _is_suspended(job) else "")
    if job.status.condition(c.CONDITION_RUNNING):
        confirm(f"Job {name} runs. Its Pods are deleted; after a resume it starts again from the beginning.", is_sure=yes)
    job.suspend()
    click.echo(f"job {name} suspended; resume it with: kubectl mpi resume {name}")


@click.command("resume")
@_job
@cluster_options()
def resume_verb(session: Session, name: str) -> None:
    """Start a suspended job again."""
    job = session.mpi().get(name)
    _check_change(job, _no_resume(session, job))
    job.resume()
    click.echo(f"job {name} resumed")


def _check_change(job: Job, obstacle: str) -> None:
    """Raise if a change of the job would have no effect.

    Raises:
        ClientError: The job has ended or is being deleted, or there is an `obstacle`.
    """
    if job.status.state == TERMINATING:
        obstacle = "it is being deleted"
    elif job.status.is_finished:
        obstacle = f"it has ended ({job.status.state}); run it again with: kubectl mpi restart {job.name}"
    if obstacle:
        raise ClientError(f"job {job.name} is unchanged: {obstacle}")


def _is_suspended(job: Job) -> bool:
    return bool(job.raw["spec"].get("runPolicy", {}).get("suspend"))


def _no_resume(session: Session, job: Job) -> str:
    """Return why a resume would have no effect; "" if it would."""
    if not _is_suspended(job):
        return f"it is not suspended, it is {job.status.state}"
    if job.status.state == c.QUEUED and has_kueue(session.api()):
        queue = job.raw["metadata"]["labels"][c.LABEL_QUEUE]
        return f"it waits in queue {queue}, and Kueue starts it when there is room"
    return ""


@click.command("delete")
@click.argument("names", metavar="JOB...", nargs=-1, required=True, shell_complete=complete_job)
@_yes
@cluster_options()
def delete_verb(session: Session, names: Sequence[str], *, yes: bool) -> None:
    """Delete jobs and everything that belongs to them."""
    jobs = [session.mpi().get(name) for name in names]
    if running := [job.name for job in jobs if not job.status.is_finished]:
        confirm(f"Not ended yet: {', '.join(running)}. Delete?", is_sure=yes)
    for job in jobs:
        job.delete()
        click.echo(f"job {job.name} deleted")


@click.command("cleanup")
@click.option("--older-than", default="0s", metavar="DURATION", help="Delete only jobs that ended at least this long ago, such as 1d.")
@click.option("--finished", "state", flag_value="finished", default=True, help="Delete all jobs that have ended (the default).")
@click.option("--failed", "state", flag_value="failed", help="Delete only failed jobs.")
@click.option("--succeeded", "state", flag_value="succeeded", help="Delete only succeeded jobs.")
@_yes
@cluster_options()
def cleanup_verb(session: Session, *, older_than: str, state: str, yes: bool) -> None:
    """List jobs that have ended, and delete them."""
    seconds = seconds_of(older_than)
    if seconds < 0:
        raise InvalidError("--older-than must not be negative")
    old = [job for job in session.mpi().jobs() if _is_old(job, seconds, state)]
    if not old:
        click.echo("nothing to clean up")
        return
    print_table(("NAME", "STATE", "ENDED"), [[job.name, job.status.state, f"{age(job.status.ended)} ago"] for job in old], coloured=1)
    confirm(f"Delete {counted(len(old), 'job')}?", is_sure=yes)
    for job in old:
        job.delete()
    click.echo(f"{counted(len(old), 'job')} deleted")


def _is_old(job: Job, seconds: int, state: str) -> bool:
    status = job.status
    if not status.is_finished or (state != "finished" and (state == "succeeded") != status.has_succeeded):
        return False
    ended = status.ended or created_at(job.raw)
    return ended is not None and (datetime.now(UTC) - ended).total_seconds() >= seconds
