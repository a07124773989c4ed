"""`run`: a program on ranks, followed from its queue to its exit code."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.files import Files, read_files
from mpiop.client.job import Job
from mpiop.client.spec import JobSpec, manifest
from mpiop.kubectl.array import indexes, run_array
from mpiop.kubectl.documents import check, of_options, read_patch
from mpiop.kubectl.inputs import seconds_option
from mpiop.kubectl.job_options import fields_of, job_options
from mpiop.kubectl.output import output_option, print_object, printable, write_line
from mpiop.kubectl.queues import check_queue
from mpiop.kubectl.session import Session, cluster_options, console
from mpiop.kubectl.standard_input import attached, is_passed_on

INTERRUPTED: Final = 130


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("-n", "-np", "--ranks", default=1, show_default=True, help="Number of MPI processes.")
@click.option("--slots", default=1, show_default=True, help="Processes on each worker; there are ⌈ranks / slots⌉ workers.")
@click.option("--image", default="", envvar="MPIOP_IMAGE", show_envvar=True, help="Image of launcher and workers.")
@click.option(
    "--mpi", "library", type=click.Choice(list(LIBRARIES)), default="openmpi", show_default=True, help="MPI library of the image."
)
@click.option("--name", default="", help="Name of the job; by default made from the program's.")
@click.option("--gpus", default="0", metavar="N", help="GPUs of each worker: 2, or of another vendor amd.com/gpu=2.")
@click.option("--cpu", default="", metavar="QUANTITY", help="CPUs of each worker, such as 2 or 500m.")
@click.option("--memory", default="", metavar="QUANTITY", help="Memory of each worker, such as 4Gi.")
@click.option("--shm", default="", metavar="QUANTITY", help="Size of /dev/shm, such as 8Gi.")
@job_options
@click.option("--upload", type=click.Path(path_type=Path), help="A file or folder (≤ 1 MiB) that is in /upload on each host.")
@click.option("--workdir", default="", help="Working directory of the ranks; /upload with --upload.")
@click.option("--user", type=int, help="User ID that the containers run as; sshd then reads HOME/.sshd_config.")
@click.option("--home", default="/root", show_default=True, help="Home of that user, for its SSH keys.")
@click.option("--queue", default="", envvar="MPIOP_QUEUE", show_envvar=True, help="Queue of Kueue.")
@click.option("--priority", default="", help="PriorityClass.")
@click.option("--retries", type=click.IntRange(min=0), default=0, help="Start the program again, so often at most, if it fails.")
@click.option("--max-restarts", type=int, help="Restart the job, so often at most, if it loses a Pod or a node.")
@seconds_option("--ttl", "Delete the job's Pods so long after its end, such as 1h.")
@seconds_option("--time-limit", "End the job if it runs longer, such as 1h.")
@click.option("--tag/--no-tag", "is_tagged", default=True, help="Let mpirun name the rank of each line, for logs --rank.")
@click.option(
    "-i", "--stdin/--no-stdin", "has_stdin", default=None, help="Pass standard input on to rank 0; by default from a file or a pipe."
)
@click.option("--array", default="", metavar="INDEXES", help="One job for each index, such as 1-20, which is in $MPIOP_ARRAY_INDEX.")
@click.option("--parallel", type=click.IntRange(min=1), default=5, show_default=True, help="How many jobs of an array run at a time.")
@click.option("--detach", is_flag=True, help="Print the name of the job, and return at once.")
@click.option("--rm", "is_removed", is_flag=True, help="Delete the job at its end.")
@click.option(
    "--dry-run", type=click.Choice(["client", "server"]), help="Print what would be sent, and send nothing, or let the server check it."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@output_option("yaml", "json", "name")
@cluster_options(short_namespace=False)
def run_verb(session: Session, **options: Any) -> int:
    """Run a program on MPI ranks and show its output: kubectl mpi run -n 8 --image IMAGE -- ./solver args.

    Ends with the exit code of the program. Ctrl-C asks whether to delete the job or to leave it running.
    """
    options["has_stdin"] = is_passed_on(session, options["has_stdin"], options)
    name, detach, is_removed, dry_run, output = (options.pop(key) for key in ("name", "detach", "is_removed", "dry_run", "output"))
    upload, array, parallel, patch_file = (options.pop(key) for key in ("upload", "array", "parallel", "patch"))
    if output and not (dry_run or detach):
        raise InvalidError("-o prints the job in the place of its output: add --dry-run or --detach")
    if array and detach:
        raise InvalidError("an array cannot be detached: this command starts its jobs one after the other (--parallel)")
    files = read_files(upload) if upload else None
    patch = read_patch(patch_file) if patch_file else None
    fields = fields_of(options)
    if patch:
        fields["patch"] = patch.value
    if dry_run or patch:
        made = _manifest(fields, name, files)
        shown = made if dry_run == "client" else check(session.api(), of_options(made, patch))
        if dry_run:
            print_object(shown, output or "yaml")
            return 0
    check_queue(session.api(), fields["queue"])
    if array:
        return run_array(session.mpi(), indexes(array), parallel, fields | {"name": name, "files": files}, is_removed=is_removed)
    job = session.mpi().submit(fields.pop("command"), name=name, files=files, **fields)
    if detach and output:
        print_object(job.raw, output)
    elif detach:
        click.echo(job.name)
    return 0 if detach else follow(job, is_removed=is_removed, input_by=session if fields["has_stdin"] else None)


def _manifest(fields: dict[str, Any], name: str, files: Files | None) -> dict[str, Any]:
    """Return the job as it would be sent; the name of its ConfigMap is not yet known."""
    if files is not None:
        config_map = files.config_map(fields["command"])
        fields = fields | {"files": (f"{config_map['metadata']['generateName']}xxxxx", files.names)}
    return manifest(JobSpec(**fields), name)


def follow(job: Job, *, is_removed: bool = False, input_by: Session | None = None) -> int:
    """Show progress and output of a job until its end, with standard input if `input_by` passes it on; return its exit code."""
    click.echo(f"job {job.name}", err=True)
    try:
        with _progress(job.name) as show:
            job.wait_for_output(show)
        with attached(input_by, job) if input_by else nullcontext():
            for line in job.tagged_logs(follow=True):
                write_line(line.text)
        job.refresh()
    except KeyboardInterrupt:
        return _interrupted(job)
    code = _end(job)
    if is_removed:
        job.delete()
    return code


@contextmanager
def _progress(name: str) -> Generator[Callable[[str], None]]:
    """Yield what shows a line of progress: on a terminal one line that changes, else each new line."""
    screen = console(stderr=True)
    if screen.is_terminal:
        with screen.status(Text(name)) as status:
            yield lambda line: status.update(Text(printable(line)))
        return
    yield lambda line: screen.print(printable(line))


def _end(job: Job) -> int:
    status, screen = job.status, console(stderr=True)
    if status.has_succeeded:
        screen.print(f"job {job.name} succeeded", style="green")
        return 0
    screen.print(printable(job.why(with_log=False)), style="red")  # its output was shown
    return status.exit_code or 1


def _interrupted(job: Job) -> int:
    back = f"kubectl mpi logs -f {job.name} --namespace {job.namespace}"
    try:
        if sys.stdin.isatty() and click.confirm(f"\nDelete job {job.name}? Otherwise it goes on", default=False, err=True):
            job.delete()
            click.echo(f"job {job.name} deleted", err=True)
            return INTERRUPTED
    except (KeyboardInterrupt, click.Abort, ClientError):
        pass
    click.echo(f"job {job.name} goes on. Come back with: {back}", err=True)
    return INTERRUPTED
