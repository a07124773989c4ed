"""`submit`: jobs from files, each mistake with its file, line and field."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click

from mpiop.client.api import Api
from mpiop.client.errors import ClientError, InvalidError, UnreachableError
from mpiop.client.job import Job
from mpiop.client.progress import unseen
from mpiop.kubectl.documents import Document, check, located, read_documents
from mpiop.kubectl.output import counted, output_option, print_object, print_objects, to_yaml
from mpiop.kubectl.run import follow
from mpiop.kubectl.session import Session, cluster_options

SEEN_SECONDS: Final = 5.0
"""How long `submit` waits for an operator at most; one that watches the namespace needs less than a second."""


@click.command("submit")
@click.argument("files", nargs=-1, required=True)
@click.option("--dry-run", type=click.Choice(["client", "server"]), help="Check, and create nothing.")
@click.option("-f", "--follow", "follows", is_flag=True, help="Follow the last job, as `run` does.")
@output_option("json", "yaml", "name")
@cluster_options()
def submit_verb(session: Session, files: Sequence[str], *, dry_run: str | None, follows: bool, output: str | None) -> int:
    """Create the MPIJobs of files (- is standard input), after all of them were checked."""
    if follows and (dry_run or output):
        raise InvalidError("--follow shows the output of a job that runs: remove --dry-run and -o")
    documents = [document for file in files for document in read_documents(file)]
    namespaces = [_namespace(session, document) for document in documents]
    if dry_run == "client":
        _print([document.value for document in documents], output or "yaml")
        return 0
    apis = [replace(session, namespace=namespace).api() for namespace in namespaces]
    checked = [check(api, document) for api, document in zip(apis, documents, strict=True)]
    if dry_run and output:
        _print(checked, output)
    elif dry_run:
        click.echo(f"{counted(len(documents), 'job')} {'is' if len(documents) == 1 else 'are'} valid")
    return 0 if dry_run else _create(apis, documents, output, follows=follows)


def _create(apis: Sequence[Api], documents: Sequence[Document], output: str | None, *, follows: bool) -> int:
    created: list[Any] = []
    for api, document in zip(apis, documents, strict=True):
        try:
            created.append(api.create_job(document.value))
        except ClientError as error:
            raise type(error)(f"{error}; {_so_far(created, error)}") from error
    if output:
        _print(created, output)
    else:
        click.echo("\n".join(f"job {name} created" for name in _names(created)))
    if follows:
        return follow(Job(apis[-1], created[-1]))
    report_unseen([Job(api, job) for api, job in zip(apis, created, strict=True)])
    return 0


def _print(jobs: Sequence[Any], output: str) -> None:
    """Print the jobs as kubectl does: YAML as documents of one file, JSON as a List if there are several."""
    if output == "yaml":
        click.echo("---\n".join(map(to_yaml, jobs)), nl=False)
    elif len(jobs) == 1:
        print_object(jobs[0], output)
    else:
        print_objects(jobs, output)


def report_unseen(jobs: Sequence[Job]) -> None:
    """Warn of each namespace in which no operator sees the last of the jobs that were just created."""
    for job in {job.namespace: job for job in jobs}.values():
        if not job.is_seen_within(SEEN_SECONDS):
            click.echo(f"warning: job {job.name}: {unseen(job.raw)}", err=True)


def _namespace(session: Session, document: Document) -> str:
    """Return the namespace that a document or else the option says; "" for that of the context.

    Raises:
        InvalidError: They say two.
    """
    named = document.value["metadata"].get("namespace") or session.namespace
    if not isinstance(named, str):
        raise InvalidError(located(document, "metadata.namespace must be a text"))
    if session.namespace and named != session.namespace:
        raise InvalidError(located(document, f"metadata.namespace is {named}, and --namespace is {session.namespace}: say one of them"))
    return named


def _so_far(created: Sequence[Any], error: ClientError) -> str:
    before = f"created before that: {', '.join(_names(created)) or 'none'}"
    if not isinstance(error, UnreachableError):
        return before
    return "; ".join(["the job may exist all the same: kubectl mpi list", *([before] if created else [])])


def _names(jobs: Sequence[Any]) -> list[str]:
    return [job["metadata"]["name"] for job in jobs]
