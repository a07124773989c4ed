"""`history`: the jobs that have ended, the last one at the bottom."""

from datetime import UTC, datetime
from typing import Final

import click

from mpiop.api.durations import format_duration
from mpiop.client.job import Job
from mpiop.client.status import JobStatus, created_at
from mpiop.kubectl.output import age, print_table, report_none
from mpiop.kubectl.session import Session, cluster_options

_HEADS: Final = ("NAME", "STATE", "EXIT", "ATTEMPTS", "RESTARTS", "DURATION", "ENDED", "CAUSE")
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@click.command("history")
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of all namespaces.")
@cluster_options()
def history_verb(session: Session, *, all_namespaces: bool) -> None:
    """List the jobs that have ended: duration, attempts, exit code and cause, the last one at the bottom.

    Jobs that were deleted, also by their time to live, are not listed.
    """
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


def _cause(status: JobStatus) -> str:
    """Return why a job failed, in one line; "" if it has succeeded."""
    failed = next((row for row in status.conditions if row.type == "Failed" and row.is_true), None)
    return "" if failed is None else (status.cause or status.message or failed.message or failed.reason).partition("\n")[0]
