"""What each verb needs: the options that select the cluster, and a question before something is lost."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import click

from mpiop.client.api import Api
from mpiop.client.mpi import MPI


@dataclass(frozen=True, slots=True)
class Session:
    """Where a verb works.

    Attributes:
        namespace: From the option; "" for the namespace of the context.
        context: Of the kubeconfig; "" for the current one.
        kubeconfig: Path; "" for kubectl's default.
        is_quiet: Whether nothing is reported while the API server does not answer.
    """

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""
    is_quiet: bool = False

    def api(self) -> Api:
        """Return the API server.

        Raises:
            UnreachableError: No cluster is configured.
        """
        return _cluster(self)

    def mpi(self) -> MPI:
        """Return the Python client."""
        return _client(self.api())

    @property
    def kubectl_options(self) -> list[str]:
        """Return the same choice as options of kubectl."""
        named = {"--namespace": self.namespace, "--context": self.context, "--kubeconfig": self.kubeconfig}
        return [f"{option}={value}" for option, value in named.items() if value]


@cache
def _cluster(session: Session) -> Api:
    """Return the API server; a verb that asks twice reads the kubeconfig and connects once."""
    from mpiop.client.cluster import Cluster  # noqa: PLC0415 - urllib3 and TLS take a tenth of a second

    report = None if session.is_quiet else _to_stderr
    return Cluster(namespace=session.namespace, context=session.context, kubeconfig=session.kubeconfig, report=report)


@cache
def _client(api: Api) -> MPI:
    """Return the Python client; a verb that uses it twice asks once what the operator offers."""
    return MPI(api=api)


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


def cluster_options(*, short_namespace: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb kubectl's options, and a `Session` as its first argument; `-n` is the namespace but where it is the number of ranks."""
    names = ("-n", "--namespace") if short_namespace else ("--namespace",)

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(verb)
        def wrapped(*args: Any, namespace: str, context: str, kubeconfig: str, **options: Any) -> Any:
            return verb(Session(namespace, context, kubeconfig), *args, **options)

        made = click.option("--kubeconfig", default="", type=click.Path(), metavar="PATH", help="Path of the kubeconfig, as for kubectl.")(
            wrapped
        )
        made = click.option("--context", default="", help="Use this context of the kubeconfig.")(made)
        return click.option(*names, default="", help="Namespace. Default: the namespace of the context.")(made)

    return decorate


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before something is lost.

    Raises:
        click.Abort: The answer is no.
        click.UsageError: There is nobody to ask.
    """
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Not a terminal: pass --yes to confirm")
    click.confirm(question, abort=True)
