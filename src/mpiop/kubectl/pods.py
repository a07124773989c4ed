"""`shell`, `exec` and `cp`: run kubectl's own commands on the launcher or a worker of a job."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import click

from mpiop.api.names import worker_name
from mpiop.client import kubectl
from mpiop.client.allocation import Launcher, is_allocation, launcher_of, script_command
from mpiop.client.errors import NotFoundError
from mpiop.client.job import Job
from mpiop.client.progress import newest_launcher
from mpiop.kubectl.completion import WithProgram, complete_job, complete_job_or_file
from mpiop.kubectl.session import Session, cluster_options

_SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")
_worker = click.option("--worker", type=int, help="Use this worker instead of the launcher.")


@click.command("shell")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@_worker
@cluster_options()
def shell_verb(session: Session, name: str, *, worker: int | None) -> int:
    """Open a shell in the launcher or a worker."""
    job = session.mpi().get(name)
    if worker is None and is_allocation(job.raw):
        return open_shell(session, job)
    return _kubectl(session, "exec", "--stdin", "--tty", pod_of(job, worker), "--", *_SHELL)


def open_shell(session: Session, job: Job) -> int:
    """Open a shell in the launcher of an allocation, which has the command `mpiop`; return the exit code of the shell."""
    command = exec_command(session, job, launcher_of(job), "--stdin", "--tty")
    return subprocess.run([*command, "--", *script_command("shell")], check=False).returncode  # noqa: S603 - kubectl, as the user could call it


def exec_command(session: Session, job: Job, launcher: Launcher, *options: str) -> list[str]:
    """Return the words of `kubectl exec` for the launcher of an allocation; `--` and a command follow."""
    return kubectl.exec_command(replace(session, namespace="").kubectl_options, job, launcher, *options)


@click.command("exec", cls=WithProgram, context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-i", "--stdin", "has_input", is_flag=True, help="Pass standard input to the command.")
@_worker
@cluster_options()
def exec_verb(session: Session, name: str, *, command: Sequence[str], has_input: bool, worker: int | None) -> int:
    """Run a command in the launcher or a worker: kubectl mpi exec JOB -- hostname."""
    return _kubectl(session, "exec", *(["--stdin"] if has_input else []), pod_of(session.mpi().get(name), worker), "--", *command)


@click.command("cp")
@click.argument("source", shell_complete=complete_job_or_file)
@click.argument("target", shell_complete=complete_job_or_file)
@_worker
@cluster_options()
def cp_verb(session: Session, source: str, target: str, *, worker: int | None) -> int:
    """Copy files: kubectl mpi cp JOB:/path ./here, or in the other direction. What is copied into a directory keeps its name."""
    job, _, path = (source if ":" in source else target).partition(":")
    if (":" in source) == (":" in target):
        raise click.UsageError("one of the two must be JOB:PATH, the other a path here")
    pod = pod_of(session.mpi().get(job), worker)
    if ":" in target:
        return _kubectl(session, "cp", source, f"{pod}:{path}")
    name = PurePosixPath(path).name
    # kubectl cannot copy a file to the name of a directory.
    return _kubectl(session, "cp", f"{pod}:{path}", str(Path(target) / name) if name and Path(target).is_dir() else target)


def pod_of(job: Job, worker: int | None) -> str:
    """Return the name of the launcher's newest Pod, or of a worker's.

    Raises:
        NotFoundError: There is none.
    """
    pods = job.pods()
    if worker is None:
        launcher = newest_launcher(pods)
        if launcher is None:
            raise NotFoundError(f"job {job.name} has no Pod of a launcher: it is {job.status.state}")
        return str(launcher["metadata"]["name"])
    name = worker_name(job.name, worker)
    if name not in {pod["metadata"]["name"] for pod in pods}:
        raise NotFoundError(f"job {job.name} has no Pod of worker {worker}: it is {job.status.state}, with workers {job.status.workers}")
    return name


def _kubectl(session: Session, verb: str, *arguments: str) -> int:
    return subprocess.run([kubectl.kubectl_program(), verb, *session.kubectl_options, *arguments], check=False).returncode  # noqa: S603 - kubectl, as the user could call it
