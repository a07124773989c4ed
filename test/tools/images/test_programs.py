"""Go programs that images are made of."""

from pathlib import Path

import pytest

from fakes.programs import executable
from imaging import programs
from imaging.errors import ImagesError
from imaging.programs import build_programs

FAKE_GO = """#!/bin/sh
[ -z "$FAIL" ] || { echo "no such package" >&2; exit 1; }
while [ "$1" != -o ]; do shift; done
mkdir -p "$2" && echo "$GOOS $GOARCH $CGO_ENABLED" >"$2/program"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a fake `go` builds."""
    go = executable(tmp_path / "go", FAKE_GO)
    monkeypatch.setattr(programs, "find_go", lambda _: str(go))
    monkeypatch.setattr(programs.platform, "machine", lambda: "aarch64")
    monkeypatch.delenv("FAIL", raising=False)
    return tmp_path


@pytest.mark.parametrize(("platforms", "built"), [((), ["arm64"]), (("linux/amd64", "linux/arm64"), ["amd64", "arm64"])])
def test_a_static_program_for_each_platform(platforms: tuple[str, ...], built: list[str], module: Path) -> None:
    build_programs(module, platforms)
    found = {file.parent.name: file.read_text("utf-8") for file in (module / "build").glob("*/program")}
    assert found == {name: f"linux {name} 0\n" for name in built}


def test_why_it_cannot_be_built(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "yes")
    with pytest.raises(ImagesError, match=r"cannot be built for arm64: no such package"):
        build_programs(module, ())
