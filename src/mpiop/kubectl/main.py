"""The command line of `kubectl mpi`. Each verb is imported only when it is used, so that `--help` is quick."""

import importlib
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from io import TextIOWrapper
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from mpiop import __version__
from mpiop.kubectl.usage import one_line, unknown_verb, with_examples
from mpiop.kubectl.verbs import VERBS

COMPLETE_VARIABLE: Final = "_MPIOP_KUBECTL_COMPLETE"
"""With it in the environment, the program completes words for a shell instead."""


class _ClosedPipeError(Exception):
    """The reader of our output has exited, as `head` does; click would turn a BrokenPipeError into exit code 1."""


@contextmanager
def _closed_pipe() -> Generator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ClosedPipeError from error


class Verbs(click.Group):
    """A group that knows its verbs without importing them, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the documents."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb; `--help` of the group only needs its summary."""
        del ctx
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(importlib.import_module(VERBS[cmd_name].module), f"{cmd_name}_verb")
        return with_examples(command, VERBS[cmd_name].examples)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that the words name.

        Raises:
            click.UsageError: The verb is unknown.
        """
        if not ctx.resilient_parsing and args[0] not in VERBS and not args[0].startswith("-"):
            raise unknown_verb(args[0], VERBS.keys(), ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line; `--help` prints here. The user's file has defaults of the verb's options."""
        with _closed_pipe():
            ctx = super().make_context(*args, **kwargs)
        from mpiop.kubectl.settings import defaults  # noqa: PLC0415 - keeps --help quick

        with suppress(Exception) if ctx.resilient_parsing else nullcontext():  # completion works without them
            ctx.default_map = defaults()
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        with _closed_pipe():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the verbs that begin so, without importing them, and options."""
        verbs = [CompletionItem(name, help=verb.summary) for name, verb in VERBS.items() if name.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs and their summaries."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubectl mpi")
def cli() -> None:
    """Run MPI programs on Kubernetes: `kubectl mpi run -n 8 --image IMAGE -- ./solver`."""


def main(arguments: list[str] | None = None) -> None:
    """Run a verb and end the process: 0 is success, 1 a failed job, 2 bad usage, 3 not found, 4 forbidden."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")  # a pipe in Latin-1 shows what it can
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a verb and return its exit code; errors and warnings are one sentence on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show_warning
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        code: Any = cli.main(arguments, prog_name="kubectl mpi", standalone_mode=False, complete_var=COMPLETE_VARIABLE)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(one_line(error, arguments), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return 130
    except (_ClosedPipeError, BrokenPipeError):
        _discard_output()
        return 141
    except Exception as error:
        from mpiop.client.errors import ClientError  # noqa: PLC0415 - keeps --help quick

        if not isinstance(error, ClientError):
            raise
        from mpiop.kubectl.output import printable  # noqa: PLC0415 - the same

        click.echo(f"error: {printable(str(error))}", err=True)
        return error.exit_code
    return int(code or 0)


def _show_warning(message: Warning | str, *_: Any, **_more: Any) -> None:
    click.echo(f"warning: {message}", err=True)


def _discard_output() -> None:
    """Let nothing more be written to a closed pipe, also not when Python ends and writes what is left."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - Path.open makes the start slower
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # it has no file descriptor
                os.dup2(nowhere.fileno(), stream.fileno())
