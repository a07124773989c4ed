"""The fields of a job and its command, as callers of `MPI` pass them: each mistake is a sentence that names the field."""

from dataclasses import fields as fields_of
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from fakes.client_api import FakeApi, container
from mpiop.client import MPI, AsyncMPI, InvalidError, JobSpec
from mpiop.client.fields import JobFields

MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"ranks": 2.5}, "ranks is 2.5: it must be a whole number"),
    ({"ranks": "4"}, "ranks is '4': it must be a whole number"),
    ({"ranks": True}, "ranks is True: it must be a whole number"),
    ({"ranks": None}, "ranks is None: it must be a whole number"),
    ({"ranks": 0}, "ranks is 0: it must be at least 1"),
    ({"slots": -1}, "slots is -1: it must be at least 1"),
    ({"mpi": "lam"}, "mpi is 'lam': it must be one of openmpi, intel, mpich"),
    ({"mounts": {"data": "claim"}}, "mount claim:data: the path must be absolute"),
    ({"mounts": {"/data": "a", "/data/": "b"}}, "mount b:/data/: a is mounted at /data already"),
    ({"mounts": {"/data": "claim:rw"}}, "mount 'claim:rw' at /data: it must be a PersistentVolumeClaim, or CLAIM:ro"),
    ({"mounts": {"/data": ":ro"}}, "mount ':ro' at /data: it must be a PersistentVolumeClaim, or CLAIM:ro"),
    ({"retries": -1}, "retries is -1: it must be at least 0"),
    ({"ttl": -1}, "ttl is -1: it must be at least 0"),
    ({"time_limit": "1h"}, "time_limit is '1h': it must be a whole number or None"),
    ({"time_limit": -1}, "time_limit is -1: it must be at least 0"),
    ({"user": -1}, "user is -1: it must be at least 0"),
    ({"max_restarts": -1}, "max_restarts is -1: it must be from 0 to "),
    ({"gpus": -1}, "gpus -1: write a number, or with another vendor's resource amd.com/gpu=2"),
    ({"gpus": 0.5}, "gpus is 0.5: it must be a whole number or a string"),
    ({"cpu": 2}, "cpu is 2: it must be a string"),
    ({"env": {"A": 1}}, "env is {'A': 1}: it must be a dict with strings as keys and values"),
    ({"env": ["A=1"]}, "env is ['A=1']: it must be a dict with strings as keys and values"),
    ({"mounts": {Path("/data"): "claim"}}, "mounts is {PosixPath('/data'): 'claim'}: it must be a dict with strings as keys and values"),
    ({"mpirun_args": "--map-by node"}, "mpirun_args is '--map-by node': it must be a list of strings"),
    ({"tolerations": ["a:b"]}, "toleration 'a:b': write KEY"),
    ({"empty_dirs": {"tmp": ""}}, "empty-dir tmp: the path must be absolute"),
    ({"host_network": "yes"}, "host_network is 'yes': it must be True or False"),
    ({"patch": {1: 2}}, "patch is {1: 2}: it must be a dict with strings as keys"),
    ({"image": None}, "image is None: it must be a string"),
    ({"image": ""}, "there is no image: give one with --image; in Python, with image="),
    ({"rank": 4}, "rank is not a field of a job: did you mean ranks?"),
    ({"colour": 1}, "colour is not a field of a job: the fields are cpu, empty_dirs, env, "),
    ({"check": "true"}, "check is not a field of a job: the fields are "),
    ({"files": "data"}, "files is 'data': it must be Files, which read_files returns"),
    ({"name": 5}, "name is 5: it must be a string"),
]


@pytest.mark.parametrize(("fields", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_named_before_anything_is_created(fields: dict[str, Any], sentence: str) -> None:
    api = FakeApi()
    with pytest.raises(InvalidError) as caught:
        MPI(api=api, image="i").submit(["true"], **fields)
    assert str(caught.value).startswith(sentence)
    assert api.requests == []


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ([], "there is no program to run"),
        ("", "there is no program to run"),
        (["python3", Path("a.py")], "command is ['python3', PosixPath('a.py')]: it must be a list of strings"),
        (["solve", 4], "command is ['solve', 4]: it must be a list of strings"),
        (None, "command is None: it must be a list of strings"),
        (b"true", "command is b'true': it must be a list of strings"),
        ("echo 'a", 'command "echo \'a": no closing quotation; or write a list of words'),
        ("cd a && ./b", "command 'cd a && ./b': no shell reads &&. For a shell on each rank, write ['sh', '-c', 'cd a && ./b']"),
        ("./a >out", "command './a >out': no shell reads >. For a shell on each rank, write ['sh', '-c', './a >out']"),
    ],
)
def test_a_command_that_cannot_run_is_refused(command: Any, sentence: str) -> None:
    with pytest.raises(InvalidError) as caught:
        MPI(api=FakeApi(), image="i").submit(command)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python a.py", ["python", "a.py"]),
        ("  sh -c 'a && b' ", ["sh", "-c", "a && b"]),
        ('./solver --size=4 #2 a-b/*.in "c d"', ["./solver", "--size=4", "#2", "a-b/*.in", "c d"]),
        (("./solver", "a b"), ["./solver", "a b"]),
    ],
)
def test_a_command_is_a_list_or_a_string_that_is_split(command: Any, words: list[str]) -> None:
    job = MPI(api=FakeApi(), image="i", is_tagged=False).submit(command).raw
    assert container(job)["args"][2:] == words


def test_unknown_defaults_and_options_are_named_at_once() -> None:
    for make in (partial(MPI, api=FakeApi()), partial(AsyncMPI, api=FakeApi())):
        for name, meant in (("imgae", "image"), ("namespaces", "namespace")):
            with pytest.raises(InvalidError, match=f"^{name} is not a field of a job: did you mean {meant}"):
                make(**{name: "x"})  # type: ignore[arg-type]


async def test_a_mistake_is_the_same_with_each_way_to_start_a_job() -> None:
    sentence = "^rank is not a field of a job: did you mean ranks?"
    wrong: dict[str, Any] = {"rank": 4}
    mpi, under_asyncio = MPI(api=FakeApi(), image="i"), AsyncMPI(api=FakeApi(), image="i")
    with pytest.raises(InvalidError, match=sentence), mpi.job(["true"], **wrong):
        pass
    with pytest.raises(InvalidError, match=sentence):
        mpi.run(print, **wrong)
    with pytest.raises(InvalidError, match=sentence):
        await under_asyncio.submit(["true"], **wrong)
    with pytest.raises(InvalidError, match=sentence):
        await under_asyncio.run(print, **wrong)
    with pytest.raises(InvalidError, match=sentence):
        async with under_asyncio.job(["true"], **wrong):
            pass


def test_an_argument_of_the_function_is_not_taken_for_a_field() -> None:
    wrong: dict[str, Any] = {"factor": 3}
    with pytest.raises(InvalidError, match=r"^factor is not a field of a job: arguments of the function by name go into kwargs=\{...\}$"):
        MPI(api=FakeApi(), image="i").run(print, **wrong)


def test_editors_know_all_fields_that_a_caller_chooses() -> None:
    hints = get_type_hints(JobSpec)
    chosen = [field.name for field in fields_of(JobSpec) if field.name not in {"command", "files", "check"}]
    assert get_type_hints(JobFields) == {name: hints[name] for name in chosen}
