"""`alloc`: creates an allocation, waits until it runs, and opens a shell in it."""

from pathlib import Path
from typing import Any, Final

import click

from mpiop.client.allocation import PROGRAM, allocation_manifest, wait_until_running
from mpiop.client.files import read_files
from mpiop.client.spec import JobSpec
from mpiop.kubectl.documents import check, of_options, read_patch
from mpiop.kubectl.inputs import seconds_option
from mpiop.kubectl.job_options import fields_of, ssh_of
from mpiop.kubectl.output import print_object, progress_line
from mpiop.kubectl.pods import open_shell
from mpiop.kubectl.program_options import program_options
from mpiop.kubectl.queues import check_queue
from mpiop.kubectl.run import interrupted
from mpiop.kubectl.session import Session, cluster_options

_HUNG_UP: Final = frozenset({129, 137})
"""Exit codes of a shell that the end of the allocation has ended."""


@click.command("alloc")
@program_options
@seconds_option("--idle", "End the allocation after this time without a step or input in a shell, such as 30m.")
@click.option("--no-shell", is_flag=True, help="Open no shell. Print the name of the allocation when it runs.")
@click.option("--dry-run", is_flag=True, help="Print the MPIJob, and create nothing.")
@cluster_options(short_namespace=False)
def alloc_verb(session: Session, *, name: str, no_shell: bool, dry_run: bool, idle: int | None, **options: Any) -> int:
    """Allocate workers, and open a shell in the launcher: kubectl mpi alloc -n 8 --slots 4 --image IMAGE --name dev.

    kubectl mpi step dev -- ./solver runs a program in it. kubectl mpi delete dev, --idle or --time-limit ends it.
    """
    upload: Path | None = options.pop("upload")
    patch_file: str = options.pop("patch")
    files = read_files(upload) if upload else None
    patch = read_patch(patch_file) if patch_file else None
    fields = fields_of(options) | ({"patch": patch.value} if patch else {})
    spec = JobSpec(command=(PROGRAM,), **fields)
    fields["ssh"] = ssh_of(session, spec)
    if dry_run or patch:
        made = allocation_manifest(JobSpec(command=(PROGRAM,), **fields), name, idle=idle or 0)
        if dry_run:
            print_object(made, "yaml")
            return 0
        check(session.api(), of_options(made, patch))
    check_queue(session.api(), fields["queue"])
    job = session.mpi().allocate(name=name, files=files, idle=idle or 0, **fields)
    click.echo(f"allocation {job.name}", err=True)
    try:
        with progress_line(job.name) as show:
            wait_until_running(job, show)
    except KeyboardInterrupt:
        return interrupted(job)
    if no_shell:
        click.echo(job.name)
        return 0
    code = open_shell(session, job)
    if code not in _HUNG_UP and not job.refresh().is_finished:
        click.echo(f"allocation {job.name} continues; end it with: kubectl mpi delete {job.name}", err=True)
    return code
