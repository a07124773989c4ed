"""What arguments each builder gets, seen by a program of its name that writes down its arguments."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from imaging.buildah import Buildah
from imaging.engines import Build, DockerLike, Push
from imaging.errors import ImagesError
from imaging.process import Programs

Install = Callable[[str, str], Path]
WRITE_DOWN = 'echo "$*" >>"$CALLS"'


def build_in(context: Path, **changes: object) -> Build:
    values: dict[str, object] = {
        "arguments": {"BASE_IMAGE": "base"},
        "labels": {"a": "b"},
        "secrets": {"ca.crt": Path("/ca")},
        "target": "stage",
    }
    return Build("a", "x.io/a:1", context, **(values | changes))  # type: ignore[arg-type]  # a dict of keywords has one type


FLAGS = "--build-arg=BASE_IMAGE=base --label=a=b --secret=id=ca.crt,src=/ca"


def test_docker(programs: Programs, tmp_path: Path, install: Install) -> None:
    calls = install("docker", WRITE_DOWN)
    docker = DockerLike("docker", programs)
    docker.build(build_in(tmp_path))
    docker.build(build_in(tmp_path, platforms=("linux/amd64", "linux/arm64"), uses_cache=False))
    docker.save("x.io/a:1", tmp_path / "a.tar")
    docker.import_root(tmp_path / "root.tar", "base")
    assert calls.read_text("utf-8").splitlines() == [
        f"build --tag=x.io/a:1 --network=host {FLAGS} --target=stage {tmp_path}",
        f"buildx build --tag=x.io/a:1 --network=host {FLAGS} --platform=linux/amd64,linux/arm64 --target=stage --no-cache {tmp_path}",
        f"save --output={tmp_path}/a.tar x.io/a:1",
        f"import {tmp_path}/root.tar base",
    ]


def test_podman(programs: Programs, tmp_path: Path, install: Install) -> None:
    calls = install("podman", WRITE_DOWN)
    podman = DockerLike("podman", programs)
    podman.build(build_in(tmp_path))
    podman.build(build_in(tmp_path, platforms=("linux/amd64", "linux/arm64")))
    podman.save("x.io/a:1", tmp_path / "a.tar")
    both = "--platform=linux/amd64,linux/arm64"
    assert calls.read_text("utf-8").splitlines() == [
        f"build --tag=x.io/a:1 --network=host --layers --format=docker {FLAGS} --target=stage {tmp_path}",
        "manifest rm x.io/a:1",
        f"build --manifest=x.io/a:1 --network=host --layers --format=docker {FLAGS} {both} --target=stage {tmp_path}",
        f"save --format=docker-archive --output={tmp_path}/a.tar x.io/a:1",
    ]


def test_buildah_has_a_storage_of_our_own(programs: Programs, tmp_path: Path, install: Install) -> None:
    calls = install("buildah", WRITE_DOWN)
    buildah = Buildah.on(tmp_path, programs)
    (tmp_path / "root.tar").touch()
    buildah.build(build_in(tmp_path))
    buildah.save("x.io/a:1", tmp_path / "a.tar")
    buildah.import_root(tmp_path / "root.tar", "base")
    buildah.discard_leftovers()
    own = f"--root={tmp_path}/storage --runroot={tmp_path}/run --storage-driver=overlay "
    assert [line.removeprefix(own).split()[0] for line in calls.read_text("utf-8").splitlines()] == ["info", "bud", "push", "bud", "rm"]
    assert not list(tmp_path.glob("base-*"))


def test_ids_are_bare_digits(programs: Programs, install: Install) -> None:
    install("docker", "echo sha256:abc")
    assert DockerLike("docker", programs).image_id("x") == "abc"
    install("docker", "exit 1")
    assert not DockerLike("docker", programs).image_id("x")
    assert not DockerLike("docker", programs).label("x", "a")


def test_a_failed_build_shows_its_end_and_its_log(programs: Programs, tmp_path: Path, install: Install) -> None:
    install("docker", 'i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo "line $i"; done; echo reason >&2; exit 3')
    with pytest.raises(ImagesError) as caught:
        DockerLike("docker", programs).build(build_in(tmp_path))
    message = str(caught.value)
    assert "exit code 3" in message
    assert "line 100\nreason" in message
    assert "line 50" not in message
    assert (tmp_path / "logs/a.log").read_text("utf-8").startswith("line 1\n")
    assert str(tmp_path / "logs/a.log") in message


WRITE_DIGEST = WRITE_DOWN + '; for word; do case $word in --digestfile=*) echo sha256:1 >"${word#*=}";; esac; done'


def test_a_push_returns_the_digest(programs: Programs, tmp_path: Path, install: Install) -> None:
    calls = install("podman", WRITE_DIGEST)
    install("buildah", WRITE_DIGEST)
    for engine in (DockerLike("podman", programs), Buildah(programs, tmp_path, "vfs")):
        assert engine.push(Push("x.io/a:1", "y.io/a:1", is_index=False, is_plain=True)) == "sha256:1"
        assert engine.push(Push("x.io/a:1", "y.io/a:1", is_index=True, is_plain=False)) == "sha256:1"
    said = [
        re.sub(r"--digestfile=\S+", "--digestfile=F", line).replace(str(tmp_path), "D") for line in calls.read_text("utf-8").splitlines()
    ]
    storage = "--root=D/storage --runroot=D/run --storage-driver=vfs"
    assert said == [
        "push --digestfile=F --tls-verify=false x.io/a:1 docker://y.io/a:1",
        "manifest push --all --digestfile=F x.io/a:1 docker://y.io/a:1",
        f"{storage} push --signature-policy=D/policy.json --digestfile=F --tls-verify=false x.io/a:1 docker://y.io/a:1",
        f"{storage} manifest push --all --signature-policy=D/policy.json --digestfile=F x.io/a:1 docker://y.io/a:1",
    ]


def test_docker_is_asked_for_the_digest(programs: Programs, install: Install) -> None:
    calls = install("docker", WRITE_DOWN + '; [ "$1" = image ] && echo z.io/a@sha256:2 && echo y.io/a@sha256:1; true')
    docker = DockerLike("docker", programs)
    assert docker.push(Push("x.io/a:1", "y.io/a:1", is_index=False, is_plain=False)) == "sha256:1"
    assert calls.read_text("utf-8").splitlines()[:2] == ["tag x.io/a:1 y.io/a:1", "push --quiet y.io/a:1"]
    with pytest.raises(ImagesError, match="podman or buildah"):
        docker.push(Push("x.io/a:1", "y.io/a:1", is_index=True, is_plain=False))
