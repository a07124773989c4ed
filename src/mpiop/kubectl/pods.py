"""`shell`, `exec` and `cp`: kubectl's own, for the launcher or a worker of a job."""

import shutil
import subprocess
from collections.abc import Sequence

import click

from mpiop.api.names import worker_name
from mpiop.client.errors import ClientError, NotFoundError
from mpiop.client.job import Job
from mpiop.client.progress import newest_launcher
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.session import Session, cluster_options

_SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")
_worker = click.option("--worker", type=int, help="In this worker instead of the launcher.")


@click.command("shell")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@_worker
@cluster_options()
def shell_verb(session: Session, name: str, *, worker: int | None) -> int:
    """Open a shell in the launcher or a worker."""
    return _kubectl(session, "exec", "--stdin", "--tty", pod_of(session.mpi().get(name), worker), "--", *_SHELL)


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-i", "--stdin", "has_input", is_flag=True, help="Pass standard input to the command.")
@_worker
@cluster_options()
def exec_verb(session: Session, name: str, *, command: Sequence[str], has_input: bool, worker: int | None) -> int:
    """Run a command in the launcher or a worker: kubectl mpi exec JOB -- hostname."""
    return _kubectl(session, "exec", *(["--stdin"] if has_input else []), pod_of(session.mpi().get(name), worker), "--", *command)


@click.command("cp")
@click.argument("source")
@click.argument("target")
@_worker
@cluster_options()
def cp_verb(session: Session, source: str, target: str, *, worker: int | None) -> int:
    """Copy files: kubectl mpi cp JOB:/path ./here, or the other way round."""
    job, _, _ = (source if ":" in source else target).partition(":")
    if (":" in source) == (":" in target):
        raise click.UsageError("one of the two must be JOB:PATH, the other a path here")
    pod = pod_of(session.mpi().get(job), worker)
    return _kubectl(session, "cp", *(f"{pod}:{path.partition(':')[2]}" if ":" in path else path for path in (source, target)))


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
    return subprocess.run([kubectl_program(), verb, *session.kubectl_options, *arguments], check=False).returncode  # noqa: S603 - kubectl, as the user could call it


def kubectl_program() -> str:
    """Return the path of kubectl.

    Raises:
        ClientError: It is not in the PATH.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise ClientError("kubectl is not in the PATH, and this needs it; install it")
    return program
