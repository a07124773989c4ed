"""What travels with a job: files, and functions with their results."""

import base64
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import FakeApi, pod, stored
from mpiop.client import MPI, ConflictError, Files, InvalidError, JobFailed, read_files
from mpiop.client.files import MAX_BYTES
from mpiop.client.functions import MARK, function_files, results_of


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


def log_of(outcomes: list[tuple[bool, Any]]) -> list[bytes]:
    text = base64.b64encode(pickle.dumps(outcomes)).decode()
    middle = len(text) // 2
    return [f"1 hello\n2 {MARK}{text[:middle]}\n3 {MARK}{text[middle:]}\n".encode()]


def ready(outcomes: list[tuple[bool, Any]], state: str = "Succeeded") -> FakeApi:
    api = FakeApi()
    api.all_pods = [pod("launcher", role="launcher")]
    api.logs = {"launcher": log_of(outcomes) if outcomes else [b"1 nothing\n"]}
    create = api.create_job

    def create_done(job: Any, *, is_dry_run: bool = False) -> Any:
        made = create(job, is_dry_run=is_dry_run)
        api.stored[made["metadata"]["name"]] = stored(made["metadata"]["name"], state=state)
        return made

    api.create_job = create_done  # type: ignore[method-assign]
    return api


def test_a_function_returns_its_results_by_rank_and_leaves_no_job() -> None:
    api = ready([(True, pickle.dumps(rank * 10)) for rank in range(3)])
    reported: list[str] = []
    assert MPI(api=api, image="i").run(lambda: 1, ranks=3, report=reported.append) == [0, 10, 20]
    assert reported == ["succeeded"]
    assert api.stored == {}
    [made] = [request[1] for request in api.requests if request[0] == "create"]
    assert made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"][-2:] == ["python3", "/upload/runner.py"]


def test_a_rank_that_raises_is_named_with_its_traceback() -> None:
    with pytest.raises(JobFailed, match=r"1 of 2 ranks raised; rank 1:\nTraceback: boom"):
        MPI(api=ready([(True, pickle.dumps(1)), (False, "Traceback: boom")]), image="i").run(lambda: 1, ranks=2)


@pytest.mark.parametrize(("state", "reason"), [("Succeeded", "NoResults"), ("Failed", "MPIJobFailed")])
def test_without_results_the_job_says_why(state: str, reason: str) -> None:
    with pytest.raises(JobFailed, match=reason):
        MPI(api=ready([], state), image="i").run(lambda: 1)


def test_the_runner_calls_the_function_and_prints_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class World:
        rank = 0

        def gather(self, outcome: Any) -> list[Any]:
            return [outcome]

    factor = 3
    files, command = function_files(lambda x: x * factor, [14])
    for name, content in files.content.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    module = type(sys)("mpi4py")
    module.MPI = type("MPI", (), {"COMM_WORLD": World()})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpi4py", module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert command == ("python3", "/upload/runner.py")
    exec((tmp_path / "runner.py").read_text().replace("/upload", str(tmp_path)), {})  # noqa: S102 - our own runner
    lines = capsys.readouterr().out.splitlines()
    assert results_of(MPI(api=FakeApi(stored())).get("pi"), lines) == [42]
