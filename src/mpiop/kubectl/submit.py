"""`submit`: jobs from files, each mistake with its file, line and field."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click
from click.core import ParameterSource

from mpiop.client.api import Api, Object
from mpiop.client.errors import ClientError, InvalidError, UnreachableError
from mpiop.client.job import Job
from mpiop.client.mpi import MPI
from mpiop.client.progress import unseen
from mpiop.kubectl.after import after_option, wait_for
from mpiop.kubectl.array import run_array
from mpiop.kubectl.conversion import Conversion
from mpiop.kubectl.convert import read_script, script_options
from mpiop.kubectl.documents import Document, check, check_length, located, of_options, read_documents
from mpiop.kubectl.inputs import read_text
from mpiop.kubectl.output import counted, output_option, print_object, print_objects, to_yaml
from mpiop.kubectl.run import follow
from mpiop.kubectl.sbatch import is_batch_script
from mpiop.kubectl.session import Session, cluster_options
from mpiop.kubectl.slurm_array import SlurmArray

SEEN_SECONDS: Final = 5.0
"""How long `submit` waits for an operator at most; one that watches the namespace needs less than a second."""


@click.command("submit")
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--dry-run", type=click.Choice(["client", "server"]), help="Check the jobs, and create nothing.")
@click.option("-f", "--follow", "follows", is_flag=True, help="Follow the last job, as `run` does.")
@after_option
@script_options
@output_option("json", "yaml", "name")
@cluster_options()
def submit_verb(session: Session, files: Sequence[str], *, dry_run: str | None, follows: bool, output: str | None, **script: Any) -> int:
    """Check the MPIJobs in all files, and then create them. - is standard input.

    Slurm scripts are converted first.
    """
    if follows and (dry_run or output):
        raise InvalidError("--follow shows the output of a job that runs: remove --dry-run and -o")
    after: Sequence[str] = script.pop("after")
    documents, array = _documents(session, files, script | {"is_after": bool(after)})
    if array and not dry_run and (follows or output):
        raise InvalidError("an array with % is started a few jobs at a time, and each end is reported: remove --follow and -o")
    namespaces = [_namespace(session, document) for document in documents]
    for document in documents:
        check_length(document)
    if dry_run == "client":
        _print([document.value for document in documents], output or "yaml")
        return 0
    apis = [replace(session, namespace=namespace).api() for namespace in namespaces]
    checked = [_checked(api, document) for api, document in zip(apis, documents, strict=True)]
    if dry_run and output:
        _print(checked, output)
    elif dry_run:
        click.echo(f"{counted(len(documents), 'job')} {'is' if len(documents) == 1 else 'are'} valid")
    if dry_run:
        return 0
    _wait_for(apis, after)
    if array:
        waiting = dict(zip(array.numbers, zip(apis, documents, strict=True), strict=True))
        return run_array(lambda number: _started(*waiting[number]), array.numbers, array.limit)
    return _create(apis, documents, output, follows=follows)


def _documents(session: Session, files: Sequence[str], options: dict[str, Any]) -> tuple[list[Document], SlurmArray | None]:
    """Return the jobs of the files, and the array of which only some may run at a time."""
    documents, scripts = list[Document](), list[Conversion]()
    for file in files:
        text = read_text(file)
        if is_batch_script(text):
            made = read_script(session, file, text, options, secrets.token_hex(3))
            scripts.append(made)
            documents += [of_options(job, None)._replace(file=file) for job in made.jobs]
        else:
            documents += read_documents(file, text)
    context = click.get_current_context()
    given = [name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given and not scripts:
        names = ", ".join(each.opts[0] for each in context.command.params if each.name in given)
        raise InvalidError(f"{names}: only for Slurm scripts, and {files[0]} has MPIJobs: set the fields in the file")
    array = next((made.array for made in scripts if made.array and made.array.limit), None)
    if array and len(files) > 1:
        raise InvalidError(f"an array with %{array.limit} starts its jobs one after the other: submit its script alone")
    return documents, array


def _wait_for(apis: Sequence[Api], names: Sequence[str]) -> None:
    """Wait for jobs of the namespace of the new ones."""
    namespaces = sorted({api.namespace for api in apis})
    if names and len(namespaces) > 1:
        raise InvalidError(f"--after: the files have jobs of namespaces {' and '.join(namespaces)}: submit those of each by themselves")
    wait_for(MPI(api=apis[0]), names)


def _started(api: Api, document: Document) -> Job:
    return Job(api, api.create_job(document.value))


def _checked(api: Api, document: Document) -> Object:
    """Return the job as the API server would store it; an error names the file."""
    try:
        return check(api, document)
    except InvalidError as error:
        if document.is_part:
            raise InvalidError(f"{document.file}: {error}") from error
        raise


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
    """Return the namespace of a document, else of the option; "" for the namespace of the context.

    Raises:
        InvalidError: They name different ones.
    """
    named = document.value["metadata"].get("namespace") or session.namespace
    if not isinstance(named, str):
        raise InvalidError(located(document, "metadata.namespace must be a text"))
    is_option = click.get_current_context().get_parameter_source("namespace") is ParameterSource.COMMANDLINE
    if is_option and named != session.namespace:
        raise InvalidError(located(document, f"metadata.namespace is {named}, and --namespace is {session.namespace}: remove one of them"))
    return named


def _so_far(created: Sequence[Any], error: ClientError) -> str:
    before = f"created before that: {', '.join(_names(created)) or 'none'}"
    if not isinstance(error, UnreachableError):
        return before
    return "; ".join(["the job may exist all the same: kubectl mpi list", *([before] if created else [])])


def _names(jobs: Sequence[Any]) -> list[str]:
    return [job["metadata"]["name"] for job in jobs]
