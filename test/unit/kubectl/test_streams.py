"""What `run` and `logs` write: the bytes of the ranks, as long as somebody reads them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import NOON, TAGGED, FakeApi, container, pod, stored
from mpiop.kubectl.main import run

RAW = b"\x1b[1mbold\x1b[0m \xff\xfe\r100%"


def tagged(api: FakeApi, *lines: bytes, words: tuple[str, ...] = ()) -> None:
    """Store a job with the command line `words` and these lines in the log of its launcher."""
    job = stored(state="Succeeded", annotations=TAGGED)
    container(job)["command"] = list(words)
    api.stored["pi"] = job
    api.all_pods = [pod("pi-launcher-x", role="launcher", terminated={"exitCode": 0})]
    api.logs = {"pi-launcher-x": [NOON.encode() + b" " + line + b"\n" for line in lines]}


@pytest.mark.parametrize(
    ("options", "shown"),
    [((), "begins\none\n123\n"), (("--rank", "0"), "begins\n123\n"), (("--rank", "1"), "one\n"), (("-f", "--rank", "1"), "one\n")],
)
def test_a_line_that_mpirun_cut_is_whole_again(mpi: Any, api: FakeApi, options: tuple[str, ...], shown: str) -> None:
    tagged(api, b"[1,0]<stdout>:begins", b"[1,0]<stdout>:12[1,1]<stdout>:one", b"[1,0]<stdout>:3")
    assert mpi("logs", "pi", *options) == (0, shown, "")


def test_without_tags_the_stream_is_raw(mpi: Any, api: FakeApi) -> None:
    code, out, _ = mpi("run", "--image", "i", "--no-tag", "--dry-run", "client", "--", "./a")
    assert (code, "tag" in out) == (0, False)
    tagged(api, b"[1,0]<stdout>:12[1,1]<stdout>:one")
    api.stored["pi"]["metadata"]["annotations"] = {}
    assert mpi("logs", "pi")[1] == "[1,0]<stdout>:12[1,1]<stdout>:one\n"


@pytest.mark.parametrize("options", [(), ("--rank", "0"), ("-f",), ("--all",), ("--worker", "0")])
def test_bytes_stay_bytes_in_a_pipe(api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes], options: tuple[str, ...]) -> None:
    tagged(api, b"[1,0]<stdout>:" + RAW)
    if "--worker" in options:
        api.all_pods, api.logs = [pod("pi-worker-0")], {"pi-worker-0": [NOON.encode() + b" " + RAW + b"\n"]}
    assert run(["logs", "pi", *options]) == 0
    assert capfdbinary.readouterr().out == (b"pi-launcher-x " if "--all" in options else b"") + RAW + b"\n"


@pytest.mark.parametrize(
    ("words", "rank", "expected"),
    [
        (("mpirun", "-n", "2", "./a"), "9", (1, "", "error: job pi has no rank 9: its ranks are 0 to 1\n")),
        (("/opt/mpi/bin/mpiexec", "-np", "2", "./a"), "-1", (1, "", "error: job pi has no rank -1: its ranks are 0 to 1\n")),
        (("mpirun", "-n", "1", "./a"), "1", (1, "", "error: job pi has no rank 1: it has rank 0 only\n")),
        (("mpirun", "-n", "2", "./a"), "1", (0, "", "")),
        (("mpirun", "-n", "1", "./a", ":", "-n", "9", "./b"), "5", (0, "", "")),
        (("./own-launcher", "-n", "2"), "9", (0, "", "")),
    ],
)
def test_a_rank_that_a_job_does_not_have_is_a_mistake(
    mpi: Any, api: FakeApi, words: tuple[str, ...], rank: str, expected: tuple[int, str, str]
) -> None:
    tagged(api, b"[1,0]<stdout>:a", words=words)
    assert mpi("logs", "pi", "--rank", rank) == expected


def test_output_that_mpirun_dropped_is_reported(mpi: Any, api: FakeApi) -> None:
    tagged(api, b"[1,0]<stdout>:1", b"[1,[1,0]<stdout>:499")
    code, out, err = mpi("logs", "pi")
    assert (code, out) == (0, "1\n499\n")
    assert err.startswith("warning: mpirun dropped output: ")


_READER_HAS_GONE = """
import sys
from fakes.client_api import FakeApi, stored
from mpiop.kubectl import main, session
session.Session.api = lambda self: FakeApi(stored(state="Failed", lastFailure={"reason": "Error", "log": "line\\n" * 100_000}))
main.main(sys.argv[1:])
"""


@pytest.mark.parametrize("arguments", ["logs pi", "list", "list -o name", "--help", "logs --help"])
def test_a_verb_ends_quietly_when_nobody_reads_its_output(arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(each).resolve()) for each in sys.path if each)}
    done = subprocess.run(
        [sys.executable, "-c", _READER_HAS_GONE, *arguments.split()], stdout=writer, stderr=subprocess.PIPE, check=False, env=environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
