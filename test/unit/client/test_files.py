"""What travels with a job: files."""

from pathlib import Path

import pytest

from fakes.client_api import FakeApi, stored
from mpiop.client import MPI, ConflictError, Files, InvalidError, UnreachableError, read_files
from mpiop.client.errors import ClientError, NotNowError
from mpiop.client.files import MAX_BYTES


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
