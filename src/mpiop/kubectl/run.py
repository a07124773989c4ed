"""`run`: creates a job, shows its progress and output, and ends with the exit code of the program."""

import sys
from contextlib import nullcontext
from typing import Any, Final

import click
from click.core import ParameterSource

from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.files import Files, read_files
from mpiop.client.job import Job
from mpiop.client.manifest import manifest
from mpiop.client.spec import JobSpec
from mpiop.kubectl.after import after_option, wait_for
from mpiop.kubectl.array import indexes, run_array, starter
from mpiop.kubectl.completion import WithProgram, complete_job
from mpiop.kubectl.documents import check, of_options, read_patch
from mpiop.kubectl.job_options import fields_of, ssh_of
from mpiop.kubectl.output import output_option, print_object, printable, progress_line, write_line
from mpiop.kubectl.program_options import program_options
from mpiop.kubectl.queues import check_queue
from mpiop.kubectl.screen import console
from mpiop.kubectl.session import Session, cluster_options
from mpiop.kubectl.standard_input import attached, is_passed_on
from mpiop.kubectl.step import StepOptions, run_step
from mpiop.kubectl.step_array import run_step_array, step_starter

INTERRUPTED: Final = 130
_OF_STEPS: Final = frozenset({"command", "ranks", "env", "mpirun_args", "is_tagged", "has_stdin", "upload", "array", "parallel"})
"""Options that a step of an allocation has too."""


@click.command("run", cls=WithProgram, context_settings={"allow_interspersed_args": False})
@program_options
@click.option("--max-restarts", type=int, help="Restart a job that loses a Pod or a node, at most this many times.")
@click.option("--tag/--no-tag", "is_tagged", default=True, help="Tag each line with its rank, so that logs --rank works.")
@click.option(
    "-i", "--stdin/--no-stdin", "has_stdin", default=None, help="Pass standard input to rank 0. Default: only if it is a file or a pipe."
)
@click.option(
    "--array",
    default="",
    metavar="INDEXES",
    help="Create one job, or with --in one step, for each index, such as 1-20. It is in $MPIOP_ARRAY_INDEX.",
)
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Run at most this many jobs of an array at a time. With --in: as many as fit.",
)
@after_option
@click.option("--detach", is_flag=True, help="Create the job, print its name, and return at once.")
@click.option("--in", "allocation", default="", metavar="ALLOCATION", shell_complete=complete_job, help="Run a step of this allocation.")
@click.option("--rm", "is_removed", is_flag=True, help="Delete the job when it ends.")
@click.option(
    "--dry-run", type=click.Choice(["client", "server"]), help="Print the job, and create nothing. With server, the API server checks it."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@output_option("yaml", "json", "name")
@cluster_options(short_namespace=False)
def run_verb(session: Session, **options: Any) -> int:
    """Run a program on MPI ranks and show its output: kubectl mpi run -n 8 --image IMAGE -- ./solver args.

    Ends with the exit code of the program. Ctrl-C asks whether to delete the job or to leave it running.
    """
    if allocation := options.pop("allocation"):
        return _run_step(session, allocation, options)
    options["has_stdin"] = is_passed_on(session, options["has_stdin"], options)
    name, detach, is_removed, dry_run, output = (options.pop(key) for key in ("name", "detach", "is_removed", "dry_run", "output"))
    upload, array, parallel, after, patch_file = (options.pop(key) for key in ("upload", "array", "parallel", "after", "patch"))
    if output and not (dry_run or detach):
        raise InvalidError("-o prints the job instead of its output: add --dry-run or --detach")
    if array and detach:
        raise InvalidError("an array cannot be detached: this command starts its jobs one after the other (--parallel)")
    numbers, files = indexes(array) if array else list[int](), read_files(upload) if upload else None
    patch = read_patch(patch_file) if patch_file else None
    fields = fields_of(options)
    if patch:
        fields["patch"] = patch.value
    fields["ssh"] = ssh_of(session, JobSpec(**fields))
    if dry_run or patch or after:
        made = _manifest(fields, f"{name}-{numbers[0]}" if name and array else name, files)
        shown = made if dry_run == "client" else check(session.api(), of_options(made, patch))
        if dry_run:
            print_object(shown, output or "yaml")
            return 0
    check_queue(session.api(), fields["queue"])
    wait_for(session.mpi(), after)
    if array:
        start = starter(session.mpi(), fields | {"name": name, "files": files})
        return run_array(start, numbers, parallel, is_removed=is_removed)
    job = session.mpi().submit(fields.pop("command"), name=name, files=files, **fields)
    if detach:
        print_object(job.raw, output) if output else click.echo(job.name)
        return 0
    return follow(job, is_removed=is_removed, input_by=session if options["has_stdin"] else None)


def _run_step(session: Session, allocation: str, options: dict[str, Any]) -> int:
    """Run the program in an allocation: with the options of a step; others belong to the job, which exists already."""
    context = click.get_current_context()
    parameters = context.command.params
    given = {each.name for each in parameters if each.name and context.get_parameter_source(each.name) is ParameterSource.COMMANDLINE}
    if wrong := [each.opts[-1] for each in parameters if each.name in (given & options.keys()) - _OF_STEPS]:
        raise InvalidError(f"{', '.join(wrong)}: not possible with --in, because allocation {allocation} exists already")
    chosen = StepOptions(
        options["ranks"] if "ranks" in given else None,
        "",
        options["env"],
        options["mpirun_args"],
        overlap=False,
        no_wait=False,
        is_tagged=options["is_tagged"],
        upload=options["upload"],
    )
    if not options["array"]:
        return run_step(session, allocation, options["command"], chosen, has_stdin=options["has_stdin"])
    if options["has_stdin"]:
        raise InvalidError("-i: standard input cannot be passed on: leave out --array")
    numbers = indexes(options["array"])
    start, fitting = step_starter(session, allocation, options["command"], chosen)
    return run_step_array(start, numbers, min(len(numbers), options["parallel"] if "parallel" in given else fitting))


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
        with progress_line(job.name) as show:
            job.wait_for_output(show)
        with attached(input_by, job) if input_by else nullcontext():
            for line in job.tagged_logs(follow=True):
                write_line(line.text)
        job.refresh()
    except KeyboardInterrupt:
        return interrupted(job)
    code = _end(job)
    if is_removed:
        job.delete()
    return code


def _end(job: Job) -> int:
    status, screen = job.status, console(stderr=True)
    if status.has_succeeded:
        screen.print(f"job {job.name} succeeded", style="green")
        return 0
    screen.print(printable(job.why(with_log=False)), style="red")  # its output was shown
    return status.exit_code or 1


def interrupted(job: Job) -> int:
    """Ask after Ctrl-C whether to delete the job, if there is a terminal; return the exit code."""
    back = f"kubectl mpi logs -f {job.name} --namespace {job.namespace}"
    try:
        if sys.stdin.isatty() and click.confirm(f"\nDelete job {job.name}? Otherwise it keeps running", default=False, err=True):
            job.delete()
            click.echo(f"job {job.name} deleted", err=True)
            return INTERRUPTED
    except (KeyboardInterrupt, click.Abort, ClientError):
        pass
    click.echo(f"job {job.name} is still running. Reattach with: {back}", err=True)
    return INTERRUPTED
