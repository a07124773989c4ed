"""What travels with a job: files, and functions with their results."""

import base64
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import FakeApi, pod, stored
from mpiop.client import MPI, ConflictError, Files, InvalidError, JobFailed, UnreachableError, read_files
from mpiop.client.errors import ClientError, NotNowError
from mpiop.client.files import MAX_BYTES
from mpiop.client.functions import MARK, RAISED, function_files, results_of


def test_a_folder_is_read_without_what_belongs_to_tools(tmp_path: Path) -> None:
    for path in ("run.py", "lib/a.py", ".git/config", "lib/__pycache__/a.pyc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    assert dict(read_files(tmp_path).content) == {"run.py": b"run.py", "lib/a.py": b"lib/a.py"}
    assert dict(read_files(tmp_path / "run.py").content) == {"run.py": b"run.py"}


def test_what_cannot_travel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="does not exist"):
        read_files(tmp_path / "nothing")
    with pytest.raises(InvalidError, match="there are no files"):
        read_files(tmp_path)
    (tmp_path / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(InvalidError, match=r"1,024,001 bytes, and 1,024,000 may travel .* the largest is large"):
        read_files(tmp_path)


def test_files_of_a_job_that_is_refused_do_not_stay() -> None:
    api = FakeApi(stored())
    with pytest.raises(ConflictError, match="already exists"):
        MPI(api=api, image="i").submit(["./a"], name="pi", files=Files({"a": b"1"}))
    assert api.requests[-1] == ("delete configmap", "a-files-fghij")


@pytest.mark.parametrize(("error", "stays"), [(NotNowError("a webhook"), False), (UnreachableError("no answer"), True)])
def test_files_stay_only_if_the_job_may_exist(error: ClientError, *, stays: bool) -> None:
    api = FakeApi()
    api.answers["create"] = error
    with pytest.raises(UnreachableError):
        MPI(api=api, image="i").submit(["./a"], name="pi", files=Files({"a": b"1"}))
    assert (api.requests[-1][0] == "delete configmap") is not stays


def log_of(results: list[Any]) -> list[bytes]:
    text = base64.b64encode(pickle.dumps(results)).decode()
    middle = len(text) // 2
    return [f"1 hello\n2 {MARK}{text[:middle]}\n3 {MARK}{text[middle:]}\n".encode()]


def ready(log: list[bytes], state: str = "Succeeded") -> FakeApi:
    api = FakeApi()
    api.all_pods = [pod("launcher", role="launcher")]
    api.logs = {"launcher": [*log]}
    api.ends(state)
    return api


def test_a_function_returns_its_results_by_rank_and_leaves_no_job() -> None:
    api = ready(log_of([pickle.dumps(rank * 10) for rank in range(3)]))
    reported: list[str] = []
    assert MPI(api=api, image="i").run(lambda: 1, ranks=3, report=reported.append) == [0, 10, 20]
    assert reported == ["succeeded"]
    assert api.stored == {}
    [made] = [request[1] for request in api.requests if request[0] == "create"]
    assert made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"][-2:] == ["python3", "/upload/runner.py"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (base64.b64encode(b"Traceback: boom").decode(), r"FunctionRaised: rank 1 raised:\nTraceback: boom"),
        ("Tra", "rank 1 raised:\nits traceback in the log is not whole"),
    ],
)
def test_a_rank_that_raises_is_named_with_its_traceback(line: str, sentence: str) -> None:
    log = [b"1 hello\n2 \n", f"3 {RAISED}1:{line}\n4 {RAISED}0:\n5 mpirun noticed\n".encode()]
    with pytest.raises(JobFailed, match=sentence):
        MPI(api=ready(log, "Failed"), image="i").run(lambda: 1, ranks=2)


def test_a_later_try_brings_the_results() -> None:
    log = [f"1 {RAISED}1:{base64.b64encode(b'boom').decode()}\n".encode(), *log_of([pickle.dumps(7)])]
    assert MPI(api=ready(log), image="i").run(lambda: 1, max_restarts=1) == [7]


@pytest.mark.parametrize("value", [7, "a", "ab", "abc"])
def test_two_tries_may_both_print_the_results(value: object) -> None:
    log = [*log_of([pickle.dumps(value)]), *log_of([pickle.dumps(value)])]
    assert MPI(api=ready(log), image="i").run(lambda: 1, max_restarts=1) == [value]


def test_results_are_not_lost_when_the_api_server_goes_away_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: Any) -> None:
        raise UnreachableError("no answer")

    api = ready(log_of([pickle.dumps(7)]))
    monkeypatch.setattr(api, "patch_config_map", away)
    monkeypatch.setattr(api, "delete_job", away)
    with pytest.warns(UserWarning, match="no answer") as caught:
        assert MPI(api=api, image="i").run(lambda: 1, name="f") == [7]
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "configmap python3-files-fghij will stay when job f is deleted",
        "job f was not deleted",
    ]


CUT = log_of([pickle.dumps("x" * 1000)])[0].rpartition(b"\n3 ")[0]


@pytest.mark.parametrize(
    ("log", "state", "sentence"),
    [
        (b"1 nothing\n", "Succeeded", "NoResults: the program ended without results"),
        (b"1 nothing\n", "Failed", "MPIJobFailed"),
        (CUT, "Succeeded", "NoResults: the results in its log are not whole"),
        (CUT[:-1], "Succeeded", "NoResults: the results in its log are not whole"),
        (CUT, "Failed", "MPIJobFailed"),
    ],
)
def test_without_results_the_job_says_why(log: bytes, state: str, sentence: str) -> None:
    with pytest.raises(JobFailed, match=sentence):
        MPI(api=ready([log], state), image="i").run(lambda: 1)


class World:
    """`COMM_WORLD` of a rank that is alone."""

    rank = 0

    def gather(self, result: Any) -> list[Any]:
        return [result]

    def Abort(self, code: int) -> None:
        raise SystemExit(code)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call a function as a rank does."""
    module = type(sys)("mpi4py")
    module.MPI = type("MPI", (), {"COMM_WORLD": World()})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpi4py", module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("time.sleep", lambda _seconds: None)

    def run(function: Callable[..., Any], *args: Any) -> None:
        files, command = function_files(function, args)
        assert command == ("python3", "/upload/runner.py")
        for name, content in files.content.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
        exec((tmp_path / "runner.py").read_text().replace("/upload", str(tmp_path)), {})  # noqa: S102 - our own runner

    return run


def test_the_runner_calls_the_function_and_prints_the_results(call: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    factor = 3

    def work(x: int) -> int:
        print("computes", end="")  # noqa: T201 - a line without an end
        return x * factor

    call(work, 14)
    lines = capsys.readouterr().out.splitlines()
    assert results_of(MPI(api=FakeApi(stored())).get("pi"), lines) == [42]


def test_a_rank_that_raises_ends_the_others_and_says_why(call: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        print("computes", end="")  # noqa: T201 - a line without an end
        raise ValueError("é" * 5000)

    with pytest.raises(SystemExit) as ended:
        call(work)
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert "ValueError: éé" in err
    [line] = [line for line in out.splitlines() if line.startswith(RAISED)]
    assert len(line) < 4096
    with pytest.raises(JobFailed, match=r"rank 0 raised:\n.*éé$"):
        results_of(MPI(api=FakeApi(stored())).get("pi"), out.splitlines())
