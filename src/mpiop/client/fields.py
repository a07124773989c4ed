"""What callers of `MPI` pass: the fields of a job with their types for editors, and a command."""

import difflib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict

from mpiop.client.api import Api
from mpiop.client.errors import InvalidError
from mpiop.client.spec import JobSpec

_OPERATORS: Final = frozenset("();<>|&")


class JobFields(TypedDict, total=False):
    """The fields of `JobSpec` that a caller chooses; it describes them."""

    image: str
    ranks: int
    slots: int
    mpi: str
    gpus: int | str
    cpu: str
    memory: str
    shm: str
    env: Mapping[str, str]
    mounts: Mapping[str, str]
    workdir: str
    queue: str
    priority: str
    retries: int
    max_restarts: int | None
    ttl: int | None
    time_limit: int | None
    ssh: str
    user: int | None
    home: str
    is_tagged: bool
    has_stdin: bool
    mpirun_args: Sequence[str]
    labels: Mapping[str, str]
    node_selector: Mapping[str, str]
    tolerations: Sequence[str]
    image_pull_secrets: Sequence[str]
    service_account: str
    host_network: bool
    empty_dirs: Mapping[str, str]
    patch: Mapping[str, Any]


class Options(JobFields, total=False):
    """The arguments of `MPI`."""

    namespace: str
    context: str
    kubeconfig: str
    api: Api | None


def job_spec(command: str | Sequence[str], settings: Mapping[str, Any]) -> JobSpec:
    """Return the job that runs `command` with these fields of `JobSpec`.

    Raises:
        InvalidError: A field is unknown, is missing, or has a value that it cannot have.
    """
    fields: dict[str, Any] = {"image": "", **settings, "command": words_of(command)}
    return JobSpec(**fields)


def check_names(names: Iterable[str], known: Collection[str] = JobFields.__optional_keys__, *, remedy: str = "") -> None:
    """Check that each name is one of the `known` fields.

    Raises:
        InvalidError: It is not: the field that was probably meant, or else the `remedy` or all fields.
    """
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else remedy or f"the fields are {', '.join(sorted(known))}"
            raise InvalidError(f"{name} is not a field of a job: {hint}")


def words_of(command: str | Sequence[str]) -> Sequence[str]:
    """Return the words of a command. A string is split as by a shell, but no shell runs.

    Raises:
        InvalidError: A quote is not closed, or a word is an operator of the shell.
    """
    if not isinstance(command, str):
        return command
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = [*lexer]
    except ValueError as error:
        raise InvalidError(f"command {command!r}: {str(error).lower()}; or write a list of words") from error
    operator = next((word for word in words if word and _OPERATORS.issuperset(word)), None)
    if operator is not None:
        shell = ["sh", "-c", command]
        raise InvalidError(f"command {command!r}: no shell reads {operator}. For a shell on each rank, write {shell}")
    return words
