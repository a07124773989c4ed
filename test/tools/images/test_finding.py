"""A builder is used if it works, and what is missing is reported or installed."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from imaging.errors import ImagesError
from imaging.finding import ENGINE_NAMES, find_engine
from imaging.process import Programs

Install = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("codes", "desired", "found"),
    [
        pytest.param((0, 0, 0), "", "docker", id="docker first"),
        pytest.param((1, 0, 0), "", "podman", id="a docker without engine does not count"),
        pytest.param((1, 1, 0), "", "buildah", id="buildah needs no engine"),
        pytest.param((0, 0, 0), "buildah", "buildah", id="the requested one"),
    ],
)
def test_the_first_that_works(
    codes: tuple[int, ...], desired: str, found: str, programs: Programs, tmp_path: Path, install: Install
) -> None:
    for name, code in zip(ENGINE_NAMES, codes, strict=True):
        install(name, f"exit {code}")
    assert find_engine(tmp_path, programs, desired=desired).name == found


def test_a_requested_one_that_does_not_work_is_not_replaced(programs: Programs, tmp_path: Path, install: Install) -> None:
    install("docker", "exit 0")
    with pytest.raises(ImagesError, match="start its engine"):
        find_engine(tmp_path, programs, desired="podman")


def test_buildah_is_installed_by_root_on_debian(
    programs: Programs, tmp_path: Path, install: Install, output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # The first attempt fails, as it does before the package lists are there.
    calls = install("apt-get", 'echo "$*" >>"$CALLS"; case "$*" in *update) : >"$CALLS.lists";; esac; [ -e "$CALLS.lists" ]')
    assert find_engine(tmp_path, programs).name == "buildah"
    first, update, second = calls.read_text("utf-8").splitlines()
    assert first == second
    assert first.endswith("install buildah")
    assert update.endswith("update")
    assert "installing Debian packages: buildah" in output.getvalue()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        pytest.param("apt-get", "as root with: apt-get install buildah", id="without root"),
        pytest.param("unrelated", "install docker, podman or buildah", id="without Debian"),
    ],
)
def test_who_cannot_install_one_is_told_what_to_do(
    program: str, message: str, programs: Programs, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    install(program, "exit 0")
    with pytest.raises(ImagesError, match=message):
        find_engine(tmp_path, programs)


def test_the_storage_driver_is_chosen_once(programs: Programs, tmp_path: Path, install: Install) -> None:
    install("buildah", 'case "$*" in *driver=overlay*info) exit 1;; esac')
    assert "--storage-driver=vfs" in find_engine(tmp_path, programs).command_line()
    install("buildah", "exit 0")
    assert "--storage-driver=vfs" in find_engine(tmp_path, programs).command_line()
