"""Building: the toolchain, the cache key, what a failure means, and what a build leaves."""

import shutil
from pathlib import Path

import pytest

from embedded import build, parts, toolchain
from embedded.build import explain
from embedded.errors import ClusterError
from embedded.locks import locked
from embedded.packages import missing_packages
from embedded.parts import PARTS, Part, Program, find_part, fingerprint
from embedded.progress import Progress
from embedded.toolchain import choose, needed_version, parse_version
from fakes.programs import executable


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go1.27", (1, 27, 0)),
        ("go 1.26.6", (1, 26, 6)),
        ("go version devel linux/amd64", (0,)),
        ("", (0,)),
    ],
)
def test_parse_version(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ({"/a/go": "go version go1.26.6 linux/amd64"}, "/a/go"),
        ({"/a/go": "go version go1.19.8 linux/amd64", "/b/go": "go version go1.30.0 linux/amd64"}, "/b/go"),
        ({"/a/go": "go version go1.26.5 linux/amd64"}, None),
        ({"/a/go": ""}, None),
        ({}, None),
    ],
    ids=["new enough", "the old one is passed over", "one patch too old", "it does not run", "none"],
)
def test_choose(candidates: dict[str, str], chosen: str | None) -> None:
    assert choose(candidates, (1, 26, 6)) == chosen


def test_the_go_that_is_fetched_can_build_every_part() -> None:
    assert parse_version(toolchain.PINNED) >= needed_version()


def test_every_part_has_a_module_with_pinned_versions() -> None:
    for part in PARTS.values():
        assert (part.folder / "go.mod").is_file(), part.name
        requires = "require" in (part.folder / "go.mod").read_text()
        assert (part.folder / "go.sum").is_file() == requires, part.name


def part_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Part:
    """Return a part whose module lies in `folder`."""
    monkeypatch.setattr(parts, "GO_SOURCES", folder)
    module = folder / "thing"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text("module thing\n\ngo 1.26.0\n")
    (module / "main.go").write_text("package main\n\nfunc main() {}\n")
    return Part("thing", (Program(".", ("thing", "alias")),), 1)


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_the_cache_key_follows_versions_and_sources(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_in(tmp_path, monkeypatch)
    before = fingerprint(part, "x86_64")
    assert fingerprint(part, "x86_64") == before
    assert fingerprint(part, "aarch64") != before
    (tmp_path / "thing" / "README").write_text("of no consequence")
    assert fingerprint(part, "x86_64") == before
    with (tmp_path / "thing" / file).open("a") as stream:
        stream.write("\n// other\n")
    assert fingerprint(part, "x86_64") != before


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("go: downloading x\n# k8s.io/y\nwrite /tmp/z: no space left on device\n", "the disk is full; free some or set MPIOP_CACHE"),
        ('Get "https://proxy/x": dial tcp: lookup proxy: no such host', "Go module proxy cannot be reached; check the network"),
        ("x/compile: signal: killed", "ran out of memory"),
        ("# a/b\n./main.go:3:1: syntax error", "building kwok: ./main.go:3:1: syntax error"),
        ("", "no output"),
    ],
    ids=["disk", "network", "memory", "a real error", "no output"],
)
def test_a_failed_build_is_one_sentence(output: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence) as caught:
        raise ClusterError(explain("kwok", output))
    assert "\n" not in str(caught.value)


def test_an_unknown_part_is_refused_with_the_list() -> None:
    with pytest.raises(ClusterError, match="no part 'docker'; there are kubernetes"):
        find_part("docker")


@pytest.mark.parametrize(
    ("present", "missing"), [((), ["a", "b"]), (("one", "two"), ["b"]), (("one", "two", "three"), [])], ids=["none", "some", "all"]
)
def test_only_missing_packages_are_named_each_once(present: tuple[str, ...], missing: list[str]) -> None:
    assert missing_packages({"one": "a", "two": "a", "three": "b"}, present.__contains__) == missing


FAKE_GO = """#!/bin/sh
# Stands in for the Go command: writes the file that -o names, or fails as told.
[ -n "$FAIL" ] && { echo "$FAIL" >&2; exit 1; }
while [ "$1" != -o ]; do shift; done
echo built >> "$COUNT"
echo program > "$2"
"""


@pytest.fixture
def buildable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Part:
    """A part that a fake Go command builds into a cache in `tmp_path`."""
    part = part_in(tmp_path / "go", monkeypatch)
    go = executable(tmp_path / "fake-go", FAKE_GO)
    monkeypatch.setenv("MPIOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setattr(build, "find_go", lambda _: str(go))
    monkeypatch.setitem(PARTS, "thing", part)
    return part


def test_a_part_is_built_once_with_its_links(buildable: Part, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        build.build((buildable.name,), Progress())
    assert (tmp_path / "count").read_text() == "built\n"
    programs = build.programs_of(("thing",))
    assert Path(programs["thing"]).samefile(programs["alias"])
    assert "left: a few seconds, thing" in capfd.readouterr().err


def test_a_failed_build_leaves_nothing(buildable: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "no space left on device")
    with pytest.raises(ClusterError, match="the disk is full"):
        build.build((buildable.name,), Progress())
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["thing.lock"]


def test_what_a_killed_build_left_is_removed(buildable: Part, tmp_path: Path) -> None:
    (tmp_path / "cache" / ".tmp-thing-0123").mkdir(parents=True)
    build.build((buildable.name,), Progress())
    assert not list((tmp_path / "cache").glob(".tmp-*"))


def test_a_disk_without_room_is_refused_before_anything_is_built(buildable: Part, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=9_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(ClusterError, match=r"0\.0 GB free and building needs 0\.0; free some or set MPIOP_CACHE"):
        build.build((buildable.name,), Progress())


def test_the_second_holder_of_a_lock_is_told_that_it_waits(tmp_path: Path) -> None:
    class Waited(Exception):  # noqa: N818 - it is not an error
        pass

    def waiting() -> None:
        raise Waited

    with locked(tmp_path / "lock"), pytest.raises(Waited), locked(tmp_path / "lock", waiting):
        pass
    with locked(tmp_path / "lock", waiting):
        pass
