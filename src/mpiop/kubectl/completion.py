"""Completion: of verbs, options, their values, jobs, queues and files, for click's scripts and for kubectl's own."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from mpiop.client.errors import ClientError
from mpiop.kubectl.main import COMPLETE_VARIABLE, cli
from mpiop.kubectl.queues import queue_names
from mpiop.kubectl.session import Session

_NO_FILES: Final = ":4"
_FILES: Final = ":0"
"""Cobra's directives to kubectl: complete no names of files, or complete them where nothing else fits."""


class WithProgram(click.Command):
    """A verb that ends with the command line of a program, whose words are not options of the verb."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options and arguments; none where a word of the program is completed."""
        return [] if ctx.resilient_parsing and ctx.params.get("command") else super().get_params(ctx)


def complete_job(ctx: click.Context, _param: Any, incomplete: str) -> list[str]:
    """Return the names of jobs that begin so; none if the cluster does not answer."""
    try:
        names = [job["metadata"]["name"] for job in _session(ctx).api().jobs()]
    except ClientError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def complete_job_or_file(ctx: click.Context, param: Any, incomplete: str) -> list[CompletionItem[str]]:
    """Return the names of jobs with a colon, and that it may be a file here."""
    return [*(CompletionItem(f"{name}:") for name in complete_job(ctx, param, incomplete)), CompletionItem(incomplete, type="file")]


def complete_queue(ctx: click.Context, _param: Any, incomplete: str) -> list[str]:
    """Return the queues of the namespace that begin so; none if the user may not see them."""
    try:
        names = queue_names(_session(ctx).api()) or ()
    except ClientError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def _session(ctx: click.Context) -> Session:
    options = {name: ctx.params.get(name) or "" for name in ("namespace", "context", "kubeconfig")}
    return Session(**options, is_quiet=True)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(shell: str) -> None:
    """Print the completion script of a shell, for the command `mpiop-kubectl`.

    kubectl itself completes `kubectl mpi` with the program kubectl_complete-mpi, which is installed in the same folder.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(cli, {}, "mpiop-kubectl", COMPLETE_VARIABLE).source())


def complete_for_kubectl(arguments: Sequence[str] | None = None) -> None:
    """Print what may come next, as kubectl asks for it: the words so far are our arguments."""
    *before, incomplete = sys.argv[1:] if arguments is None else arguments
    found = ShellComplete(cli, {}, "kubectl mpi", COMPLETE_VARIABLE).get_completions(before, incomplete)
    lines = [f"{item.value}\t{item.help}" if item.help else item.value for item in found if item.type == "plain"]
    click.echo("\n".join([*lines, _NO_FILES if len(lines) == len(found) else _FILES]))
