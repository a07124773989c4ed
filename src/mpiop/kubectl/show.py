"""`list`, `describe` and `why`."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from mpiop.api import constants as c
from mpiop.api.durations import format_duration
from mpiop.client.job import Job
from mpiop.client.progress import UNSEEN_SECONDS, is_ready, is_worker, pod_order, ranks_of_pod, unseen
from mpiop.client.status import JobStatus, created_at, is_unseen
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import age, output_option, print_objects, print_table, printable, report_none
from mpiop.kubectl.screen import console
from mpiop.kubectl.session import Session, cluster_options

WATCH_SECONDS = 1.0


@click.command("list")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the jobs of all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Show the table again when it changes.")
@output_option("wide", "json", "yaml", "name")
@cluster_options()
def list_verb(session: Session, *, all_namespaces: bool, watch: bool, output: str | None) -> None:
    """List jobs with their state, or the reason why they wait."""
    mpi = session.mpi()
    shown: list[list[str]] | None = None
    while True:
        jobs = mpi.jobs(everywhere=all_namespaces)
        if output in {"json", "yaml", "name"}:
            print_objects([job.raw for job in jobs], output)
        elif not jobs:
            if shown != []:
                report_none("MPIJobs", "" if all_namespaces else session.api().namespace)
            shown = []
        else:
            rows = [_row(job, is_wide=output == "wide", with_namespace=all_namespaces) for job in jobs]
            if rows != shown:
                print_table(_heads(is_wide=output == "wide", with_namespace=all_namespaces), rows, coloured=2 if all_namespaces else 1)
            shown = rows
        if not watch:
            _report_unseen(jobs)
            return
        time.sleep(WATCH_SECONDS)


def _report_unseen(jobs: Sequence[Job]) -> None:
    """Warn of the namespaces in which no operator has seen a job."""
    for job in {job.namespace: job for job in jobs if is_unseen(job.raw, UNSEEN_SECONDS)}.values():
        click.echo(f"warning: job {job.name}: {unseen(job.raw)}", err=True)


def _heads(*, is_wide: bool, with_namespace: bool) -> list[str]:
    heads = ["NAME", "STATE", "WORKERS", "RESTARTS", "DURATION", "AGE"]
    return [*(["NAMESPACE"] if with_namespace else []), *heads, *(["ATTEMPTS", "IMAGE", "NODE", "MESSAGE"] if is_wide else [])]


def _row(job: Job, *, is_wide: bool, with_namespace: bool) -> list[str]:
    status = job.status
    cells = [job.name, status.state, status.workers, str(status.restarts), _duration(status), age(created_at(job.raw))]
    if is_wide:
        launcher = job.raw["spec"]["mpiReplicaSpecs"][c.LAUNCHER]["template"]["spec"]["containers"][0]
        cells += [str(status.failed_attempts), launcher.get("image", ""), status.node, status.message]
    return [job.namespace, *cells] if with_namespace else cells


def _duration(status: JobStatus) -> str:
    if status.started is None:
        return ""
    return format_duration((status.ended or datetime.now(UTC)) - status.started)


@click.command("describe")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@cluster_options()
def describe_verb(session: Session, name: str) -> None:
    """Show conditions, failed attempts and Pods of a job, and explain its state."""
    job = session.mpi().get(name)
    status, screen = job.status, console()
    facts = {
        "Name": f"{job.namespace}/{job.name}",
        "State": status.state,
        "Workers": status.workers,
        "Started": f"{status.started:%Y-%m-%d %H:%M:%S} UTC" if status.started else "",
        "Duration": _duration(status),
    }
    for head, text in facts.items():
        screen.print(f"{head + ':':<12}{printable(text)}")
    screen.print("\nConditions:")
    print_table(("  TYPE", "REASON", "SINCE", "MESSAGE"), [_condition_row(row) for row in status.conditions if row.is_true])
    if status.attempts:
        screen.print("\nFailed attempts:")
        attempts = [[f"  {row.number}", row.pod, row.node, str(row.exit_code), row.reason, age(row.ended)] for row in status.attempts]
        print_table(("  ATTEMPT", "POD", "NODE", "EXIT CODE", "REASON", "AGO"), attempts)
    if pods := job.pods():
        screen.print("\nPods:")
        print_table(("  POD", "ROLE", "READY", "PHASE", "RESTARTS", "NODE", "ADDRESS", "RANKS"), _pod_rows(job, pods))
    screen.print(f"\n{printable(job.why())}")


def _condition_row(row: Any) -> list[str]:
    return [f"  {row.type}", row.reason, age(row.since), row.message.partition("\n")[0]]


def _pod_rows(job: Job, pods: Sequence[Any]) -> list[list[str]]:
    rows: list[list[str]] = []
    for pod in sorted(pods, key=pod_order):
        status, name = pod.get("status", {}), pod["metadata"]["name"]
        restarts = sum(row.get("restartCount", 0) for row in status.get("containerStatuses") or ())
        role, ready = (c.ROLE_WORKER if is_worker(pod) else c.ROLE_LAUNCHER), ("yes" if is_ready(pod) else "no")
        node, address = pod.get("spec", {}).get("nodeName", ""), status.get("podIP", "")
        rows.append([
            f"  {name}",
            role,
            ready,
            status.get("phase", ""),
            str(restarts),
            node,
            address,
            ranks_of_pod(job.raw, pod, job.ranks),
        ])
    return rows


@click.command("why")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@cluster_options()
def why_verb(session: Session, name: str) -> None:
    """Explain why a job waits or failed, and what to do."""
    console().print(printable(session.mpi().get(name).why()))
