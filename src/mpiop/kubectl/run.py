"""`run`: a program on ranks, followed from its queue to its exit code."""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.files import Files, read_files
from mpiop.client.job import Job
from mpiop.client.spec import READ_ONLY, JobSpec, manifest, mount_path
from mpiop.kubectl.array import indexes, run_array
from mpiop.kubectl.output import printable, to_yaml, write_line
from mpiop.kubectl.queues import check_queue
from mpiop.kubectl.session import Session, cluster_options, console
from mpiop.kubectl.standard_input import attached, is_passed_on

INTERRUPTED: Final = 130


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("-n", "--ranks", default=1, show_default=True, help="Number of MPI processes.")
@click.option("--slots", default=1, show_default=True, help="Processes on each worker; there are ⌈ranks / slots⌉ workers.")
@click.option("--image", default="", help="Image of launcher and workers.")
@click.option(
    "--mpi", "library", type=click.Choice(list(LIBRARIES)), default="openmpi", show_default=True, help="MPI library of the image."
)
@click.option("--name", default="", help="Name of the job; by default made from the program's.")
@click.option("--gpus", default=0, help="GPUs of each worker.")
@click.option("--cpu", default="", metavar="QUANTITY", help="CPUs of each worker, such as 2 or 500m.")
@click.option("--memory", default="", metavar="QUANTITY", help="Memory of each worker, such as 4Gi.")
@click.option("--shm", default="", metavar="QUANTITY", help="Size of /dev/shm, such as 8Gi.")
@click.option("-e", "--env", multiple=True, metavar="NAME=VALUE", help="Environment variable of all ranks. Can be repeated.")
@click.option("--mount", multiple=True, metavar="PVC:/PATH[:ro]", help="Mount a PersistentVolumeClaim. Can be repeated.")
@click.option("--upload", type=click.Path(path_type=Path), help="A file or folder (≤ 1 MiB) that is in /upload on each host.")
@click.option("--workdir", default="", help="Working directory of the ranks; /upload with --upload.")
@click.option("--user", type=int, help="User ID that the containers run as; sshd then reads HOME/.sshd_config.")
@click.option("--home", default="/root", show_default=True, help="Home of that user, for its SSH keys.")
@click.option("--queue", default="", help="Queue of Kueue.")
@click.option("--priority", default="", help="PriorityClass.")
@click.option("--max-restarts", default=0, help="How often a failed launcher is started again.")
@click.option("--ttl", type=int, metavar="SECONDS", help="Delete the job's Pods so long after its end.")
@click.option("--time-limit", type=int, metavar="SECONDS", help="How long the job may run.")
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
@cluster_options(short_namespace=False)
def run_verb(session: Session, **options: Any) -> int:
    """Run a program on MPI ranks and show its output: kubectl mpi run -n 8 --image IMAGE -- ./solver args.

    Ends with the exit code of the program. Ctrl-C asks whether to delete the job or to leave it running.
    """
    options["has_stdin"] = is_passed_on(session, options["has_stdin"], options)
    name, detach, is_removed, dry_run = (options.pop(key) for key in ("name", "detach", "is_removed", "dry_run"))
    upload, array, parallel = (options.pop(key) for key in ("upload", "array", "parallel"))
    files = read_files(upload) if upload else None
    fields = spec_fields(options)
    if dry_run:
        return _show(session, fields, name, files, is_checked=dry_run == "server")
    check_queue(session.api(), options["queue"])
    if array and detach:
        raise InvalidError("an array cannot be detached: this command starts its jobs one after the other (--parallel)")
    if array:
        return run_array(session.mpi(), indexes(array), parallel, fields | {"name": name, "files": files}, is_removed=is_removed)
    job = session.mpi().submit(fields.pop("command"), name=name, files=files, **fields)
    if detach:
        click.echo(job.name)
        return 0
    return follow(job, is_removed=is_removed, input_by=session if fields["has_stdin"] else None)


def spec_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `JobSpec` from the options.

    Raises:
        InvalidError: An option has not the form that it needs.
    """
    fields = options | {"mpi": options["library"], "env": dict(_pair(word, "=", "--env NAME=VALUE") for word in options["env"])}
    fields["mounts"] = read_mounts(options["mount"])
    return {key: value for key, value in fields.items() if key not in {"library", "mount"}}


def read_mounts(words: Sequence[str]) -> dict[str, str]:
    """Return claims by path, as `JobSpec` takes them.

    Raises:
        InvalidError: A word is not `PVC:/PATH` or `PVC:/PATH:ro`, or a path is used twice.
    """
    form = f"--mount PVC:/PATH[{READ_ONLY}]"
    mounts: dict[str, str] = {}
    for word in words:
        claim, rest = _pair(word, ":", form)
        path, _, mode = rest.partition(":")
        if rest not in {path, path + READ_ONLY}:
            raise InvalidError(f"{word!r} is not of the form {form}")
        path = mount_path(path)
        if path in mounts:
            raise InvalidError(f"--mount {word}: {mounts[path]} is mounted at {path} already")
        mounts[path] = claim + (READ_ONLY if mode else "")
    return mounts


def _pair(word: str, separator: str, form: str) -> tuple[str, str]:
    name, found, value = word.partition(separator)
    if not name or not found:
        raise InvalidError(f"{word!r} is not of the form {form}")
    return name, value


def _show(session: Session, fields: dict[str, Any], name: str, files: Files | None, *, is_checked: bool) -> int:
    if files is not None:
        config_map = files.config_map(fields["command"])
        fields["files"] = (f"{config_map['metadata']['generateName']}xxxxx", files.names)
    made = manifest(JobSpec(**fields), name)
    click.echo(to_yaml(session.api().create_job(made, is_dry_run=True) if is_checked else made), nl=False)
    return 0


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
