"""The command line of hack/images: what it refuses, prints and leaves behind."""

import fcntl
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from imaging.cache import cache_folder, empty, unfinished
from imaging.catalogue import ROOT, release_version
from imaging.command import main
from imaging.errors import ImagesError

Install = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("IMAGE_NAME", "RELEASE_VERSION", "PLATFORMS", "BASE_IMAGE", "IMAGE_BUILDER", "MPIOP_CACHE"):
        monkeypatch.delenv(name, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_list_prints_full_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["list"]) == 0
    assert f"operator mpiop.invalid/mpi-operator:{release_version()}\n" in capsys.readouterr().out
    monkeypatch.setenv("IMAGE_NAME", "registry.example.com/mpi-operator")
    monkeypatch.setenv("RELEASE_VERSION", "dev")
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "operator registry.example.com/mpi-operator:dev",
        "agent registry.example.com/mpi-operator-agent:dev",
        "pi mpiop.invalid/mpi-pi:openmpi",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--image-name", "x.io/a:dev"], "must be a name without tag or digest"),
        (["build", "--only", "tau"], "no such image; there are operator, agent, pi"),
        (["build", "--builder", "kaniko"], "no such builder; there are docker, podman, buildah"),
        (["build", "--platforms", "linux/amd64, linux/arm64", "--save", "out"], "--save writes one platform"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_build_prints_its_files_and_nothing_else_on_standard_output(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Like docker: an image is there when it was built, and `save` writes a file.
    install("docker", 'case "$1" in save) : >"${2#--output=}";; image) exit 1;; esac')
    assert main(["build", "--only", "pi", "--save", str(tmp_path / "out"), "--base-image", "base"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/out/pi.tar\n"
    assert "[1/1] mpiop.invalid/mpi-pi:openmpi: built in" in printed.err


def test_a_failed_build_fails_the_command_and_the_next_one_cleans_up(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    calls = install("buildah", 'case "$*" in *bud*) exit 1;; *inspect*) exit 1;; *"rm --all") echo cleaned >>"$CALLS";; esac')
    assert main(["build", "--only", "pi", "--base-image", "base"]) == 1
    assert "error: pi:" in capsys.readouterr().err
    assert not calls.exists()
    assert main(["build", "--only", "pi", "--base-image", "base"]) == 1
    assert calls.read_text("utf-8") == "cleaned\n"


def test_clean_leaves_an_empty_cache(capsys: pytest.CaptureFixture[str]) -> None:
    (cache_folder() / "storage/overlay").mkdir(parents=True)
    (cache_folder() / "base.tar").touch()
    assert main(["clean"]) == 0
    assert [path.name for path in cache_folder().iterdir()] == ["lock"]
    assert "removed" in capsys.readouterr().err


def test_the_cache_can_be_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPIOP_CACHE", str(tmp_path / "elsewhere"))
    assert cache_folder() == tmp_path / "elsewhere/images"
    monkeypatch.delenv("MPIOP_CACHE")
    assert cache_folder() == tmp_path / "cache/mpiop/images"


def test_a_cache_that_cannot_be_written_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ImagesError, match="set MPIOP_CACHE"):
        cache_folder()


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImagesError, match="gone cannot be removed"):
        empty(tmp_path / "gone")


def test_work_that_failed_stays_marked(tmp_path: Path) -> None:
    with unfinished(tmp_path) as before:
        assert not before
    with suppress(ImagesError), unfinished(tmp_path) as before:
        assert not before
        raise ImagesError("x")
    with unfinished(tmp_path) as before:
        assert before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_builder_and_command(number: signal.Signals, tmp_path: Path, install: Install) -> None:
    with _hanging_build(tmp_path, install) as process:
        builder = os.pidfd_open(int((tmp_path / "ready").read_text("utf-8")))
        process.send_signal(number)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in error
    has_ended, _, _ = select.select([builder], [], [], 30)
    os.close(builder)
    assert has_ended


def test_the_lock_is_held_while_a_builder_lives(tmp_path: Path, install: Install) -> None:
    with _hanging_build(tmp_path, install) as process:
        builder = int((tmp_path / "ready").read_text("utf-8"))
        process.kill()
        process.wait(timeout=30)
    with (cache_folder() / "lock").open("w", encoding="utf-8") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(builder, signal.SIGKILL)
        fcntl.flock(lock, fcntl.LOCK_EX)  # returns when the builder is gone


def _hanging_build(folder: Path, install: Install) -> "subprocess.Popen[str]":
    """Start a build that hangs once its builder has written its id to the fifo `ready`; what it leaves is in `folder`, even when killed."""
    os.mkfifo(folder / "ready")
    install("docker", f'case "$1" in build) echo $$ >"{folder}/ready"; exec sleep 600;; image) exit 1;; esac')
    environment = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}:/bin",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    command = [sys.executable, str(ROOT / "hack/images"), "build", "--only", "pi", "--base-image", "base"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
