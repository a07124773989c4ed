"""`submit`: jobs from files, each mistake with its file, line and field."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import click
import yaml

from mpiop.api import constants as c
from mpiop.client.api import Api
from mpiop.client.errors import ClientError, ForbiddenError, InvalidError, NotFoundError, UnreachableError
from mpiop.client.job import Job
from mpiop.client.progress import unseen
from mpiop.kubectl.inputs import read_text
from mpiop.kubectl.output import to_yaml
from mpiop.kubectl.run import follow
from mpiop.kubectl.session import Session, cluster_options

_FIELD: Final = re.compile(r"(?:unknown field \\?\"|\")?(?P<path>(?:spec|metadata)(?:\.[A-Za-z0-9_]+|\[[^\]]+\])+)")
SEEN_SECONDS: Final = 5.0
"""How long `submit` waits for an operator at most; one that watches the namespace needs less than a second."""
_STEP: Final = re.compile(r"\.?([A-Za-z0-9_]+)|\[(\d+)\]")


class Document(NamedTuple):
    """A document of a file, as objects and as a tree that knows its lines."""

    file: str
    value: Any
    tree: yaml.Node


@click.command("submit")
@click.argument("files", nargs=-1, required=True)
@click.option("--dry-run", type=click.Choice(["client", "server"]), help="Check, and create nothing.")
@click.option("-f", "--follow", "follows", is_flag=True, help="Follow the last job, as `run` does.")
@cluster_options()
def submit_verb(session: Session, files: Sequence[str], *, dry_run: str | None, follows: bool) -> int:
    """Create the MPIJobs of files (- is standard input), after all of them were checked."""
    documents = [document for file in files for document in read_documents(file)]
    namespaces = [_namespace(session, document) for document in documents]
    if dry_run == "client":
        click.echo("---\n".join(to_yaml(document.value) for document in documents), nl=False)
        return 0
    apis = [replace(session, namespace=namespace).api() for namespace in namespaces]
    for api, document in zip(apis, documents, strict=True):
        check(api, document)
    if dry_run:
        click.echo(f"{len(documents)} jobs are valid")
        return 0
    created: list[Any] = []
    for api, document in zip(apis, documents, strict=True):
        try:
            created.append(api.create_job(document.value))
        except ClientError as error:
            raise type(error)(f"{error}; {_so_far(created, error)}") from error
    click.echo("\n".join(f"job {name} created" for name in _names(created)))
    if follows:
        return follow(Job(apis[-1], created[-1]))
    report_unseen([Job(api, job) for api, job in zip(apis, created, strict=True)])
    return 0


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


def check(api: Api, document: Document) -> None:
    """Let the API server check a job and its Pod templates, of which the definition of MPIJobs has the types of the fields only.

    Raises:
        InvalidError: With file and line of the field.
    """
    path = ""
    try:
        api.create_job(document.value, is_dry_run=True)
        for role, replicas in document.value["spec"]["mpiReplicaSpecs"].items():
            path = f"spec.mpiReplicaSpecs.{role}.template."
            template = replicas["template"]
            with contextlib.suppress(ForbiddenError, NotFoundError):  # a quota or a missing right says nothing about fields
                api.check_pod({**template, "spec": {"restartPolicy": c.NEVER, **template["spec"]}})
    except InvalidError as error:
        raise InvalidError(located(document, str(error), path)) from error


def read_documents(file: str) -> Iterator[Document]:
    """Yield the MPIJobs of a file.

    Raises:
        InvalidError: It cannot be read, is no YAML, or has something else.
    """
    text = read_text(file)
    try:
        trees = [tree for tree in _trees(text) if tree is not None]
        values = [value for value in yaml.safe_load_all(text) if value is not None]
    except yaml.YAMLError as error:
        raise InvalidError(f"{file}: no YAML: {' '.join(str(error).split())}") from error
    if not values:
        raise InvalidError(f"{file} is empty")
    for value, tree in zip(values, trees, strict=True):
        where = f"{file}:{tree.start_mark.line + 1}"
        document: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if (document.get("apiVersion"), document.get("kind")) != (c.API_VERSION, c.KIND):
            raise InvalidError(f"{where}: no {c.KIND} of {c.API_VERSION}; other objects are for kubectl apply")
        if not isinstance(document.get("metadata"), dict):
            raise InvalidError(f"{where}: metadata with a name is missing")
        yield Document(file, document, tree)


def _trees(text: str) -> Iterator[yaml.Node | None]:
    yield from yaml.compose_all(text, Loader=yaml.SafeLoader)


def located(document: Document, message: str, below: str = "") -> str:
    """Return `message` with file and line of the field that it names, which is one of the object at the path `below`."""
    found = _FIELD.search(message)
    line = _line(document.tree, below + found["path"]) if found else document.tree.start_mark.line
    return f"{document.file}:{line + 1}: {message}"


def _line(tree: yaml.Node, path: str) -> int:
    """Return the line of the field, or of the last field on the way that exists."""
    line = tree.start_mark.line
    for name, index in _STEP.findall(path):
        if isinstance(tree, yaml.MappingNode) and name:
            pairs = {key.value: (key, value) for key, value in tree.value}
            if name not in pairs:
                return line
            key, tree = pairs[name]
            line = key.start_mark.line
        elif isinstance(tree, yaml.SequenceNode) and index and int(index) < len(tree.value):
            tree = tree.value[int(index)]
            line = tree.start_mark.line
    return line


def _so_far(created: Sequence[Any], error: ClientError) -> str:
    before = f"created before that: {', '.join(_names(created)) or 'none'}"
    if not isinstance(error, UnreachableError):
        return before
    return "; ".join(["the job may exist all the same: kubectl mpi list", *([before] if created else [])])


def _names(jobs: Sequence[Any]) -> list[str]:
    return [job["metadata"]["name"] for job in jobs]
