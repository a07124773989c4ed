"""What travels with a job: files."""

import os
from pathlib import Path

import pytest

from fakes.client_api import FakeApi, stored
from mpiop.client import MPI, ConflictError, Files, InvalidError, UnreachableError, read_files
from mpiop.client.errors import ClientError, NotNowError
from mpiop.client.files import MAX_BYTES, _files_of


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "id_rsa").write_text("key")
    made = tmp_path / "job"
    (made / "data").mkdir(parents=True)
    (made / "data" / "a").write_text("a")
    return made


@pytest.mark.parametrize(
    ("link", "target"),
    [("x", "../secret/id_rsa"), ("x", "{}/secret/id_rsa"), ("data/x", "../../secret"), ("x", "{}/secret"), ("x", ".."), ("x", "/dev")],
)
@pytest.mark.parametrize("is_indirect", [False, True])
def test_a_link_out_of_a_folder_is_refused(folder: Path, link: str, target: str, *, is_indirect: bool) -> None:
    (folder / link).symlink_to(target.format(folder.parent))
    if is_indirect:
        (folder / "a").symlink_to(link)
    with pytest.raises(InvalidError, match=r"(x|a) is a link to /.*, outside of .*/job: copy it into the folder, or remove the link$"):
        read_files(folder)


@pytest.mark.parametrize(
    ("link", "target", "part"),
    [("notes.txt", ".git/config", ".git"), ("docs", ".git", ".git"), ("data/x", "../lib/.venv/a", ".venv"), ("x", ".GIT/config", ".GIT")],
)
def test_a_link_to_what_is_left_out_is_refused(folder: Path, link: str, target: str, part: str) -> None:
    for path in (".git/config", ".GIT/config", "lib/.venv/a"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("token")
    (folder / link).symlink_to(target)
    with pytest.raises(
        InvalidError, match=rf"{link} is a link to /.*, and \{part} is left out: copy what it points to, or remove the link$"
    ):
        read_files(folder)


def test_a_link_that_appears_while_a_folder_is_read_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data", "data/a"):
        with monkeypatch.context() as patched:
            hidden = folder / "hidden"

            def swap(path: Path, root: Path, *, name: str = name, hidden: Path = hidden) -> list[tuple[str, Path]]:
                found = list(_files_of(path, root))
                (folder / name).rename(hidden)
                (folder / name).symlink_to(folder.parent / "secret" / ("" if name == "data" else "id_rsa"))
                return found

            (folder.parent / "secret" / "a").write_text("key")
            patched.setattr("mpiop.client.files._files_of", swap)
            with pytest.raises(InvalidError, match=r"cannot be read: (Not a directory|Too many levels of symbolic links)"):
                read_files(folder)
            (folder / name).unlink()
            hidden.rename(folder / name)


@pytest.mark.parametrize(
    ("link", "target", "found"),
    [
        ("x", "data/a", {"x"}),
        ("x", "{}/job/data/a", {"x"}),
        ("x", "data", {"x/a"}),
        ("data/x", "../../job/data/a", {"data/x"}),
        ("x", "nothing", set[str]()),
        ("x", "../nothing", set[str]()),
        (".#a", "user@host.1:2", set[str]()),
        ("x", "x", set[str]()),
        (".git", "../secret", set[str]()),
    ],
)
def test_a_link_within_a_folder_is_read(folder: Path, link: str, target: str, found: set[str]) -> None:
    (folder / link).symlink_to(target.format(folder.parent))
    assert set(read_files(folder).content) == {"data/a"} | found
    assert set(read_files(folder).content.values()) == {b"a"}


def test_what_users_name_themselves_may_be_a_link(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    (folder.parent / "file").symlink_to(folder / "data" / "a")
    assert dict(read_files(folder.parent / "link").content) == {"data/a": b"a"}
    assert dict(read_files(folder.parent / "file").content) == {"file": b"a"}


@pytest.mark.parametrize(("link", "target"), [("x", "."), ("data/x", ".."), ("data/x", "../data")])
def test_a_link_that_never_ends_is_refused(folder: Path, link: str, target: str) -> None:
    (folder / link).symlink_to(target)
    with pytest.raises(InvalidError, match=r"x is a link to .*, which it is in itself: remove the link$"):
        read_files(folder)


def test_links_that_multiply_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.files.MOST_ENTRIES", 1000)
    for level in range(40):
        (folder / f"d{level}").mkdir()
        for name in ("left", "right"):
            (folder / f"d{level}" / name).symlink_to(f"../d{level + 1}")
    (folder / "d40").mkdir()
    with pytest.raises(InvalidError, match="more than 1,000 files and folders"):
        read_files(folder)


def test_pipes_and_devices_do_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert dict(read_files(folder).content) == {"data/a": b"a"}
    for path in (folder / "pipe", Path("/dev/null")):
        with pytest.raises(InvalidError, match="is neither a file nor a folder"):
            read_files(path)


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
