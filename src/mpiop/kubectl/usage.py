"""Texts about the command line: examples in each help, and one line for wrong usage."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import click

_SIMILAR = 0.7
"""Of difflib; with click's 0.6, `--in` would be similar to `--bind-to`."""


def with_examples(verb: click.Command, examples: Sequence[str]) -> click.Command:
    """Show the examples at the end of a verb's help."""
    verb.epilog = "\n".join(["\b", "Examples:", *(f"  kubectl mpi {example}" for example in examples)])
    return verb


def unknown_verb(name: str, verbs: Iterable[str], ctx: click.Context) -> click.UsageError:
    """Return the error for a verb that does not exist."""
    return click.UsageError(f"unknown verb {name}{_did_you_mean(get_close_matches(name, list(verbs)))}", ctx)


def one_line(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Return what is wrong with the arguments in one line, with the command that shows which are right."""
    message = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError):
        return f"error: {message}"
    command = error.ctx.command_path if error.ctx else f"kubectl mpi {arguments[0]}"
    if isinstance(error, click.NoSuchOption):
        message = _unknown_option(error, command)
    joint = " See" if message.endswith("?") else "; see"
    return f"error: {message.removesuffix('.')}{joint} {command} --help"


def _unknown_option(error: click.NoSuchOption, command: str) -> str:
    similar = get_close_matches(error.option_name, error.possibilities or (), cutoff=_SIMILAR)
    message = f"unknown option {error.option_name}{_did_you_mean(similar)}"
    return f"{message}: pass options of mpirun with --mpirun-args" if command.endswith(" run") and not similar else message


def _did_you_mean(names: Sequence[str] | None) -> str:
    return f", did you mean {names[0]}?" if names else ""
