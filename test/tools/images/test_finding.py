"""A builder is used if it works, and what is missing is reported or installed."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from imaging.errors import ImagesError
from imaging.finding import find_engine
from imaging.process import Programs

Install = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("scripts", "found"),
    [
        pytest.param({"docker": "exit 0", "podman": "exit 0", "buildah": "exit 0"}, "docker", id="docker first"),
        pytest.param({"docker": "exit 1", "podman": "exit 0", "buildah": "exit 0"}, "podman", id="a docker without engine does not count"),
        pytest.param({"docker": "exit 1", "podman": "exit 1", "buildah": "exit 0"}, "buildah", id="buildah needs no engine"),
    ],
)
def test_the_first_that_works(scripts: dict[str, str], found: str, programs: Programs, tmp_path: Path, install: Install) -> None:
    for name, body in scripts.items():
        install(name, body)
    assert find_engine(tmp_path, programs).name == found


def test_the_requested_one_is_used(programs: Programs, tmp_path: Path, install: Install) -> None:
    install("docker", "exit 0")
    install("buildah", "exit 0")
    assert find_engine(tmp_path, programs, desired="buildah").name == "buildah"


@pytest.mark.parametrize(
    ("desired", "message"), [("kaniko", "no such builder; there are docker, podman, buildah"), ("podman", "start its engine")]
)
def test_a_requested_one_that_does_not_work_is_not_replaced(
    desired: str, message: str, programs: Programs, tmp_path: Path, install: Install
) -> None:
    install("docker", "exit 0")
    with pytest.raises(ImagesError, match=message):
        find_engine(tmp_path, programs, desired=desired)


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


def test_without_root_the_command_is_printed(programs: Programs, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    install("apt-get", "exit 0")
    with pytest.raises(ImagesError, match="as root with: apt-get install buildah"):
        find_engine(tmp_path, programs)


def test_without_debian_the_choice_is_printed(programs: Programs, tmp_path: Path, install: Install) -> None:
    install("unrelated", "exit 0")
    with pytest.raises(ImagesError, match="install docker, podman or buildah"):
        find_engine(tmp_path, programs)


def test_the_storage_driver_is_chosen_once(programs: Programs, tmp_path: Path, install: Install) -> None:
    install("buildah", 'case "$*" in *driver=overlay*info) exit 1;; esac')
    assert "--storage-driver=vfs" in find_engine(tmp_path, programs).command_line()
    install("buildah", "exit 0")
    assert "--storage-driver=vfs" in find_engine(tmp_path, programs).command_line()
