"""Standard input of `run` and `exec`: it reaches kubectl, which passes it on, or a sentence reports why not."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi
from fakes.programs import executable

_PROGRAM = """
import sys, pathlib
from fakes.client_api import FakeApi, pod, stored
from mpiop.kubectl import main, session

class Api(FakeApi):
    def job(self, name):
        if pathlib.Path("input").exists():
            self.stored[name] = stored(name, state="Succeeded")
        return super().job(name)

    def create_job(self, job, *, is_dry_run=False):
        launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
        if not launcher.get("stdinOnce"):
            pathlib.Path("input").touch()
        made = super().create_job(job, is_dry_run=is_dry_run)
        self.stored["pi"] = stored(state="Running")
        return made

api = Api(stored("old", state="Running"))
api.all_pods = [pod("pi-launcher-x", role="launcher")]
api.logs = {"pi-launcher-x": [b"1 shown\\n"]}
session.Session.api = lambda self: api
main.main(sys.argv[1:])
"""
_KUBECTL = '#!/bin/sh\necho "$@" >arguments\ncat >part\nmv part input\n'
RUN = ("run", "--image", "i", "--name", "pi")


@dataclass(frozen=True)
class Shell:
    """A folder with a `kubectl` that keeps its arguments and its standard input."""

    folder: Path

    def run(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(Path(each).resolve()) for each in sys.path if each),
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
        }
        command = [sys.executable, "-c", _PROGRAM, *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, check=False, timeout=60, **options)

    def read(self, name: str) -> bytes | None:
        file = self.folder / name
        return file.read_bytes() if file.exists() else None


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    executable(tmp_path / "kubectl", _KUBECTL)
    return Shell(tmp_path)


ATTACHED = b"attach --stdin --quiet --namespace=team pi-launcher-x --container=launcher\n"


@pytest.mark.parametrize("options", [(), ("-i",)])
def test_a_pipe_reaches_the_launcher_byte_for_byte(shell: Shell, options: tuple[str, ...]) -> None:
    data = bytes(range(256)) * 4096
    done = shell.run(*RUN, *options, "--", "./a", input=data)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (0, b"shown\n", b"job pi succeeded")
    assert (shell.read("arguments"), shell.read("input")) == (ATTACHED, data)


def test_a_file_reaches_the_launcher(shell: Shell) -> None:
    (shell.folder / "data").write_bytes(b"1 2 3")
    with (shell.folder / "data").open() as file:
        assert shell.run(*RUN, "--", "./a", stdin=file).returncode == 0
    assert shell.read("input") == b"1 2 3"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((*RUN, "--", "./a"), {"stdin": subprocess.DEVNULL}),
        ((*RUN, "--no-stdin", "--", "./a"), {"input": b"data"}),
        ((*RUN, "--detach", "--", "./a"), {"input": b"data"}),
        ((*RUN, "--dry-run", "client", "--", "./a"), {"input": b"data"}),
    ],
)
def test_nothing_is_passed_on_where_nobody_asked_for_it(shell: Shell, arguments: tuple[str, ...], options: dict[str, Any]) -> None:
    done = shell.run(*arguments, **options)
    assert (done.returncode, shell.read("arguments"), b"warning" in done.stderr) == (0, None, False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--detach",), "leave out --detach"),
        (("--array", "1-2"), "leave out --array"),
        (("--dry-run", "client"), "leave out --dry-run"),
        (("--max-restarts", "1"), "a second attempt could not read it again; leave out --max-restarts"),
        (("--retries", "1"), "a second attempt could not read it again; leave out --retries"),
        (("--patch", "-"), "--patch - reads it"),
        ((), "you may not create pods/attach in namespace team; ask for that right"),
    ],
)
def test_what_cannot_be_passed_on_is_a_mistake(mpi: Any, api: FakeApi, options: tuple[str, ...], why: str) -> None:
    api.forbidden = {"create pods/attach"}
    assert mpi(*RUN, "-i", *options, "--", "./a") == (2, "", f"error: -i: standard input cannot be passed on: {why}\n")
    assert api.stored == {}


def test_a_pipe_that_cannot_be_passed_on_is_reported(shell: Shell) -> None:
    done = shell.run(*RUN, "--max-restarts", "1", "--", "./a", input=b"data" * 100_000)
    assert done.stderr.startswith(b"warning: standard input is not passed on: a second attempt could not read it again; leave out")
    assert (done.returncode, shell.read("arguments")) == (0, None)


def test_exec_passes_standard_input_on_if_it_is_asked_to(shell: Shell) -> None:
    shell.run("exec", "-i", "old", "--", "cat", "-n", input=b"data")
    assert (shell.read("arguments"), shell.read("input")) == (b"exec --stdin pi-launcher-x -- cat -n\n", b"data")


def test_only_a_launcher_that_is_attached_to_has_a_standard_input(mpi: Any) -> None:
    launcher = yaml.safe_load(mpi(*RUN, "--dry-run", "client", "--", "./a")[1])["spec"]["mpiReplicaSpecs"]["Launcher"]
    assert "stdin" not in launcher["template"]["spec"]["containers"][0]
