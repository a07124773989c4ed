"""An argument that Linux cannot pass on is reported before anything is created."""

from typing import Any

import pytest

from fakes.client_api import FakeApi
from mpiop.client.arguments import LONGEST_ARGUMENT
from mpiop.client.errors import InvalidError
from mpiop.client.files import Files
from mpiop.client.mpi import MPI

FITS, TOO_LONG = "x" * LONGEST_ARGUMENT, "x" * (LONGEST_ARGUMENT + 1)
LAUNCHER = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"
ADVICE = "has 131,072 bytes, and Linux passes on at most 131,071 as one argument or variable"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        pytest.param({"command": ["./a", TOO_LONG]}, f"{LAUNCHER}.args[4]", id="an argument"),
        pytest.param({"command": [TOO_LONG]}, f"{LAUNCHER}.args[3]", id="the program"),
        pytest.param({"command": ["./a", "é" * 65536]}, f"{LAUNCHER}.args[4]", id="bytes count, not characters"),
        pytest.param({"command": ["./a"], "env": {"A": TOO_LONG[2:]}}, f"{LAUNCHER}.env[2]", id="a variable with its name"),
        pytest.param(
            {"command": ["./a"], "patch": {"spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [
                {"name": "launcher", "lifecycle": {"preStop": {"exec": {"command": [TOO_LONG]}}}}]}}}}}}},
            f"{LAUNCHER}.lifecycle.preStop.exec.command[0]",
            id="a patch",
        ),
    ],
)  # fmt: skip
def test_what_is_too_long_is_refused_before_anything_is_created(fields: dict[str, Any], where: str) -> None:
    api = FakeApi()
    with pytest.raises(InvalidError) as refused:
        MPI(api=api).submit(image="i", files=Files({"a": b"a"}), **fields)
    assert str(refused.value).startswith(f"{where} {ADVICE}")
    assert api.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"command": ["./a", FITS, FITS], "mpi": "mpich"}, id="two of the greatest length"),
        pytest.param({"command": ["./a", "x" * 70_000, "x" * (LONGEST_ARGUMENT - 70_011)]}, id="what Open MPI puts into one variable"),
        pytest.param({"command": ["./a", "$" * LONGEST_ARGUMENT], "mpi": "intel"}, id="dollars that are written twice for Kubernetes"),
        pytest.param({"command": ["./a"], "env": {"A": FITS[2:]}}, id="a variable"),
    ],
)
def test_what_fits_is_sent(fields: dict[str, Any]) -> None:
    api = FakeApi()
    MPI(api=api).submit(image="i", **fields)
    assert [request[0] for request in api.requests] == ["create"]


def test_the_arguments_of_a_program_of_open_mpi_are_one_variable() -> None:
    api = FakeApi()
    with pytest.raises(InvalidError, match=r"^OMPI_ARGV, in which Open MPI passes on all arguments of the program, has 131,072 bytes"):
        MPI(api=api).submit(["./a", "x" * 70_000, "x" * (LONGEST_ARGUMENT - 70_010)], image="i")
    assert api.requests == []
