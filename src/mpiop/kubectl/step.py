"""`step`: runs a program on slots of an allocation, and ends with its exit code."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import click

from mpiop.client.allocation import Watch, launcher_of
from mpiop.client.job import Job
from mpiop.client.steps import Step, StepEnd, Streams, judged
from mpiop.client.tags import RankLines, Tagged
from mpiop.client.uploads import upload
from mpiop.kubectl.completion import WithProgram, complete_job
from mpiop.kubectl.job_options import split_words
from mpiop.kubectl.output import printable, write_line
from mpiop.kubectl.pods import exec_command
from mpiop.kubectl.session import Session, cluster_options
from mpiop.kubectl.standard_input import is_piped

ENDING: Final = "ends the ranks; Ctrl-C again does not wait for them"
_KEPT_BYTES: Final = 64 * 1024


class _AfterName(WithProgram):
    """Takes the name of the allocation before or after the options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words: the options end with the first word of the program, or with `--`."""
        if args and not args[0].startswith("-"):
            name, *rest = args
            found, _, _ = self.make_parser(ctx).parse_args(list(rest))  # which takes the first word of the program for the name
            others = found.get("command")  # without one, a mark of click's
            words = [found.get("name"), *(cast("Sequence[Any]", others) if isinstance(others, list | tuple) else ())]
            program = [word for word in words if isinstance(word, str)]
            options = rest[: len(rest) - len(program)]
            args = [*(options[:-1] if options[-1:] == ["--"] else options), name, *program]
        return super().parse_args(ctx, args)


@click.command("step", cls=_AfterName, context_settings={"allow_interspersed_args": False})
@click.argument("name", metavar="ALLOCATION", shell_complete=complete_job)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM")
@click.option(
    "-n",
    "-np",
    "--ranks",
    type=click.IntRange(min=1),
    help="Number of MPI processes. Default: the number of the allocation, or all slots of --hosts.",
)
@click.option("--hosts", default="", metavar="0,1", help="Run only on these hosts: line numbers in the hostfile, starting at 0.")
@click.option("--overlap", is_flag=True, help="Also use slots of other steps, and occupy no slots.")
@click.option("--no-wait", is_flag=True, help="Do not wait for free slots.")
@click.option("-e", "--env", multiple=True, metavar="NAME=VALUE", help="Set an environment variable of all ranks. Can be repeated.")
@click.option("--mpirun-args", multiple=True, metavar="'OPTIONS'", help="Pass options to mpirun, split as by a shell. Can be repeated.")
@click.option("--upload", type=click.Path(path_type=Path), help="Copy a folder of at most 100 MB to the hosts. The ranks start in it.")
@click.option(
    "--build",
    default="",
    metavar="COMMAND",
    help="Run this command in the folder of --upload in the launcher, before it is copied to the hosts.",
)
@click.option("--tag/--no-tag", "is_tagged", default=True, help="Tag each line with its rank, so that lines arrive whole.")
@click.option(
    "-i", "--stdin/--no-stdin", "has_stdin", default=None, help="Pass standard input to rank 0. Default: only if it is a file or a pipe."
)
@cluster_options(short_namespace=False)
def step_verb(session: Session, name: str, *, command: Sequence[str], has_stdin: bool | None, **options: Any) -> int:
    """Run a program in an allocation: kubectl mpi step dev -n 4 -- ./solver args.

    Ends with the exit code of the program. Ctrl-C ends its ranks.
    """
    program = command[1:] if command[:1] == ("--",) else command
    if not program:
        raise click.UsageError("there is no program to run: put it at the end, after --")
    return run_step(session, name, program, StepOptions(**options), has_stdin=has_stdin)


def run_step(session: Session, name: str, program: Sequence[str], chosen: "StepOptions", *, has_stdin: bool | None) -> int:
    """Run a program in an allocation until its end, and return its exit code.

    Raises:
        ClientError: There is no such allocation, it does not run, or the connection was lost.
        InvalidError: The step was refused.
    """
    job = session.mpi().get(name)
    if chosen.upload:
        upload_for_step(session, job, chosen.upload)
    has_input = is_piped() if has_stdin is None else has_stdin
    end = _waited(ShownStep(session, job, program, replace(chosen, has_input=has_input)))
    if end.why:
        click.echo(f"error: step {end.number}: {printable(end.why)}", err=True)
    return end.code


def upload_for_step(session: Session, job: Job, folder: Path) -> None:
    """Send a folder to the launcher of an allocation."""
    upload(exec_command(session, job, launcher_of(job), "--stdin"), folder)


class ShownStep:
    """A step that shows its output, each line after a label."""

    def __init__(self, session: Session, job: Job, program: Sequence[str], chosen: "StepOptions", label: str = "") -> None:
        """Start it in an allocation that was just read.

        Raises:
            ClientError: The allocation does not run.
        """
        launcher = launcher_of(job)
        self._label, self._errors, self._watch = label, bytearray(), Watch(job, launcher.workers)
        library = job.library if chosen.is_tagged else None
        streams = Streams(self._write, self._write_error, self._report_wait, self._watch.lost)
        kubectl, words = exec_command(session, job, launcher, "--stdin"), [*chosen.words(), "--", *program]
        self.step = Step(kubectl, words, lambda: RankLines(library), streams, has_input=chosen.has_input)

    def wait(self) -> StepEnd:
        """Wait for its end, as `Step` does, and add to a failure which worker was lost."""
        end = self.step.wait()
        return judged(end, self._errors.decode(errors="replace"), self._watch.lost)

    def _write(self, line: Tagged) -> None:
        write_line(self._label.encode() + line.text)

    def _write_error(self, line: Tagged) -> None:
        self._errors += line.text + b"\n"
        del self._errors[:-_KEPT_BYTES]
        output = sys.stderr.buffer
        output.write(self._label.encode() + line.text + b"\n")
        output.flush()

    def _report_wait(self, text: str) -> None:
        click.echo(f"{self._label}waits: {printable(text)}", err=True)


@dataclass(frozen=True, slots=True)
class StepOptions:
    """The options of a step, as click reads them.

    Raises:
        click.UsageError: A value has not the form that it needs.
    """

    ranks: int | None
    hosts: str
    env: Sequence[str]
    mpirun_args: Sequence[str]
    overlap: bool
    no_wait: bool
    is_tagged: bool
    upload: Path | None = None
    build: str = ""
    has_input: bool = False

    def __post_init__(self) -> None:
        """Check the values before anything is sent."""
        self.words()

    def words(self) -> list[str]:
        """Return the options for the script in the launcher."""
        words = [] if self.ranks is None else ["-n", str(self.ranks)]
        if self.hosts:
            if not all(part.isascii() and part.isdecimal() for part in self.hosts.split(",")):
                raise click.UsageError(f"--hosts {self.hosts}: write numbers with commas, such as 0,1")
            words += ["--hosts", self.hosts]
        for pair in self.env:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.*", pair, re.DOTALL):
                raise click.UsageError(f"{pair!r} is not of the form --env NAME=VALUE")
            words += ["--env", pair]
        for text in self.mpirun_args:
            words += ["--mpirun-args", shlex.join(split_words(text))]
        if self.build and not self.upload:
            raise click.UsageError("--build needs --upload: it runs in the uploaded folder")
        words += ["--build", self.build] if self.build else []
        flags = (("--overlap", self.overlap), ("--no-wait", self.no_wait), ("--tag", self.is_tagged), ("--upload", bool(self.upload)))
        return words + [flag for flag, is_set in flags if is_set]


def _waited(shown: ShownStep) -> StepEnd:
    """Wait for the end of a step; the first Ctrl-C ends its ranks, the second the connection."""
    is_asked = False
    while True:
        try:
            return shown.wait()
        except KeyboardInterrupt:
            if is_asked:
                shown.step.kill()
                raise
            is_asked = True
            click.echo(ENDING, err=True)
            shown.step.interrupt()
