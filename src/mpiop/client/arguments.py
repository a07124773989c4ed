"""How long one argument or variable of a container may be: Kubernetes accepts more than Linux, and the Pod would then never start."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from mpiop.client.errors import InvalidError

LONGEST_ARGUMENT: Final = 128 * 1024 - 1
"""Bytes without the final zero, where memory has pages of 4 KiB.  Source: MAX_ARG_STRLEN in Linux, include/uapi/linux/binfmts.h."""
_OPEN_MPI_ARGUMENTS: Final = "OMPI_ARGV"
_PASSED_ON: Final = re.compile(r"\.(?:command|args|env)\[\d+\]$")


def check_arguments(job: Mapping[str, Any], program: Sequence[str] = ()) -> None:
    """Check the arguments and variables of all containers of an MPIJob, of which any field may be missing or wrong.

    Args:
        job: The MPIJob.
        program: The program and its arguments if `mpirun` is Open MPI's, which passes the arguments to each rank in one variable too.

    Raises:
        InvalidError: Something is too long, with its path and what to do.
    """
    for path, text in _texts(job.get("spec"), "spec"):
        if _PASSED_ON.search(path):
            _check(path, text.replace("$$", "$"))  # as Kubernetes passes it on
    _check(
        f"{_OPEN_MPI_ARGUMENTS}, in which Open MPI passes on all arguments of the program,",
        f"{_OPEN_MPI_ARGUMENTS}={' '.join(program[1:])}",
    )


def _check(what: str, text: str) -> None:
    if len(text) > LONGEST_ARGUMENT // 4 and (size := len(text.encode(errors="surrogatepass"))) > LONGEST_ARGUMENT:
        raise InvalidError(
            f"{what} has {size:,} bytes, and Linux passes on at most {LONGEST_ARGUMENT:,} as one argument or variable: "
            "use a file of the image or of a volume, or kubectl mpi run --upload"
        )


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield each text below `value` with its path; a variable is `NAME=VALUE`."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _texts(item, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        if isinstance(fields.get("name"), str) and isinstance(fields.get("value"), str):
            yield path, f"{fields['name']}={fields['value']}"
        for key, item in fields.items():
            yield from _texts(item, f"{path}.{key}")
