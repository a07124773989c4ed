"""Texts about the command line: examples in each help, and one line for wrong usage."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

import click

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "run": (
        "run -n 8 --slots 4 --gpus 1 --image solver:1 -- ./solver input.nml",
        "run -n 4 --image solver:1 --mpirun-args '--bind-to core' --time-limit 12h --detach -- ./solver",
        "run -n 4 --image solver:1 --dry-run=client -o yaml -- ./solver",
    ),
    "list": ("list", "list -A -o wide", "list -o json"),
    "describe": ("describe solver",),
    "why": ("why solver",),
    "logs": ("logs -f solver", "logs solver --rank 3", "logs solver --attempt 1"),
    "wait": ("wait solver --timeout 2h",),
    "history": ("history",),
    "top": ("top solver",),
    "timeline": ("timeline solver", "timeline solver -o svg"),
    "shell": ("shell solver --worker 1",),
    "exec": ("exec solver -- cat /etc/mpi/hostfile",),
    "cp": ("cp input.txt solver:/tmp/ --worker 1", "cp solver:/data/result.txt ."),
    "scale": ("scale solver 4",),
    "suspend": ("suspend solver --yes",),
    "resume": ("resume solver",),
    "restart": ("restart solver --yes",),
    "delete": ("delete solver", "delete solver-1 solver-2 --yes"),
    "cleanup": ("cleanup --older-than 1d", "cleanup --failed --yes"),
    "submit": ("submit job.yaml --follow", "submit job.yaml --dry-run=server"),
    "convert": ("convert job.sbatch --image solver:1",),
    "nodes": ("nodes",),
    "doctor": ("doctor", "doctor --run"),
    "version": ("version",),
    "completion": ("completion bash",),
}


def with_examples(verb: click.Command) -> click.Command:
    """Show the examples at the end of a verb's help."""
    lines = [f"  kubectl mpi {example}" for example in EXAMPLES.get(verb.name or "", ())]
    verb.epilog = "\n".join(["\b", "Examples:", *lines]) if lines else None
    return verb


def unknown_verb(name: str, verbs: Mapping[str, str], ctx: click.Context) -> click.UsageError:
    """Return the error for a verb that does not exist."""
    return click.UsageError(f"unknown verb {name}{_did_you_mean(get_close_matches(name, verbs))}", ctx)


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
    message = f"unknown option {error.option_name}{_did_you_mean(error.possibilities)}"
    return f"{message}: pass options of mpirun with --mpirun-args" if command.endswith(" run") and not error.possibilities else message


def _did_you_mean(names: Sequence[str] | None) -> str:
    return f", did you mean {names[0]}?" if names else ""
