"""Completion: of names of jobs, for click's scripts and for kubectl's own."""

import sys
from typing import Any

import click
from click.shell_completion import get_completion_class

from mpiop.client.errors import ClientError
from mpiop.kubectl.main import COMPLETE_VARIABLE, cli
from mpiop.kubectl.session import Session
from mpiop.kubectl.verbs import VERBS

_NO_FILES = ":4"
"""Cobra's directive to kubectl: no completion of file names."""


def complete_job(ctx: click.Context, _param: Any, incomplete: str) -> list[str]:
    """Return the names of jobs that begin so; none if the cluster does not answer."""
    options = {name: ctx.params.get(name) or "" for name in ("namespace", "context", "kubeconfig")}
    return job_names(incomplete, **options)


def job_names(incomplete: str, **options: str) -> list[str]:
    """Return the names of jobs that begin with `incomplete`."""
    try:
        names = [job["metadata"]["name"] for job in Session(**options, is_quiet=True).api().jobs()]
    except ClientError:
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(shell: str) -> None:
    """Print the completion script of a shell, for the command `mpiop-kubectl`.

    kubectl itself completes `kubectl mpi` by the program kubectl_complete-mpi, which is installed beside it.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(cli, {}, "mpiop-kubectl", COMPLETE_VARIABLE).source())


def complete_for_kubectl(arguments: list[str] | None = None) -> None:
    """Print what may come next, as kubectl asks for it: the words so far are our arguments."""
    *before, incomplete = sys.argv[1:] if arguments is None else arguments
    if not before:
        found = [f"{name}\t{verb.summary}" for name, verb in VERBS.items() if name.startswith(incomplete)]
    elif before[0] in VERBS and VERBS[before[0]].is_of_job:
        found = job_names(incomplete, namespace=_value(before, "-n", "--namespace"), context=_value(before, "--context"))
    else:
        found = []
    click.echo("\n".join([*found, _NO_FILES]))


def _value(words: list[str], *names: str) -> str:
    """Return the value of an option among the words."""
    for name, value in zip(words, [*words[1:], ""], strict=True):
        if name in names:
            return value
        if name.startswith(tuple(f"{each}=" for each in names)):
            return name.partition("=")[2]
    return ""
