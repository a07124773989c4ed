"""`history`: the jobs that have ended, or the steps of an allocation, the last one at the bottom."""

from datetime import UTC, datetime
from typing import Final

import click

from mpiop.api.durations import format_duration
from mpiop.client.allocation import launcher_of
from mpiop.client.errors import InvalidError
from mpiop.client.job import Job
from mpiop.client.past_steps import PastStep, past_steps
from mpiop.client.status import JobStatus, created_at
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import age, print_table, report_none
from mpiop.kubectl.pods import exec_command
from mpiop.kubectl.session import Session, cluster_options

_HEADS: Final = ("NAME", "STATE", "EXIT", "ATTEMPTS", "RESTARTS", "DURATION", "ENDED", "CAUSE")
_STEP_HEADS: Final = ("STEP", "EXIT", "RANKS", "HOSTS", "STARTED", "DURATION", "COMMAND")
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@click.command("history")
@click.argument("name", metavar="[ALLOCATION]", default="", shell_complete=complete_job)
@click.option("-A", "--all-namespaces", is_flag=True, help="List the jobs of all namespaces.")
@cluster_options()
def history_verb(session: Session, name: str, *, all_namespaces: bool) -> None:
    """List ended jobs with duration, attempts, exit code and cause. The most recent job is at the bottom.

    Deleted jobs are not listed, even if a time to live deleted them. With the name of an allocation, list its steps.
    """
    if name and all_namespaces:
        raise InvalidError("-A lists the jobs of all namespaces: leave out the name of an allocation")
    if name:
        job = session.mpi().get(name)
        steps = past_steps(exec_command(session, job, launcher_of(job), "--stdin"))
        print_table(_STEP_HEADS, [_step_row(step, datetime.now(UTC)) for step in steps])
        return
    jobs = sorted((job for job in session.mpi().jobs(everywhere=all_namespaces) if job.status.is_finished), key=_ended)
    if not jobs:
        report_none("ended MPIJobs", "" if all_namespaces else session.api().namespace)
        return
    rows = [[*([job.namespace] if all_namespaces else []), *_row(job)] for job in jobs]
    heads = (*(["NAMESPACE"] if all_namespaces else []), *_HEADS)
    print_table(heads, rows, coloured=heads.index("STATE"))


def _ended(job: Job) -> datetime:
    return job.status.ended or created_at(job.raw) or _NEVER


def _row(job: Job) -> list[str]:
    status = job.status
    exit_code = "" if status.exit_code is None else str(status.exit_code)
    attempts = str(status.failed_attempts + status.has_succeeded)
    duration = format_duration(status.ended - status.started) if status.started and status.ended else ""
    return [job.name, status.state, exit_code, attempts, str(status.restarts), duration, f"{age(_ended(job))} ago", _cause(status)]


def _step_row(step: PastStep, now: datetime) -> list[str]:
    code = "" if step.code is None else str(step.code)
    duration = format_duration((step.ended or now) - step.started)
    return [
        str(step.number),
        code,
        str(step.ranks),
        ",".join(map(str, step.hosts)),
        f"{age(step.started, now)} ago",
        duration,
        step.command,
    ]


def _cause(status: JobStatus) -> str:
    """Return why a job failed, in one line; "" if it has succeeded."""
    failed = next((row for row in status.conditions if row.type == "Failed" and row.is_true), None)
    return "" if failed is None else (status.cause or status.message or failed.message or failed.reason).partition("\n")[0]
