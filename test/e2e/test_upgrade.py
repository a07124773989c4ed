"""From the version before to this one and back, with jobs in every phase.

The version before is the newest tag `v*` that is not this commit's, or else the commit before the newest one that changed what is deployed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.clusters import IS_CURRENT, ROOT, embedded_cluster, load_archives, load_images, output_shown
from e2e.conftest import NAME, new_namespace
from e2e.handover import ENDS, GO_ON, KEPT, Handover, begin
from e2e.kubectl import Kubectl
from e2e.operator_pods import Operator

CLUSTER = f"{NAME}-upgrade"
DEPLOY = "deploy/v2beta1/mpi-operator.yaml"
TAG = "before"
DEPLOYED = ("src", "agent", "manifests", "charts")
"""Folders without a change in which an upgrade would be from a version to itself."""


def git(*arguments: str) -> str:
    """Return what git prints; "" if it fails."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout.strip()


def version_before() -> str:
    """Return the commit of the version before, or "" if the history of the checkout does not reach it."""
    if tag := git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD~1"):
        return tag
    changed = git("rev-list", "--max-count=1", "HEAD", "--", *DEPLOYED)
    return git("rev-parse", "--verify", "--quiet", f"{changed}~1")


@dataclass(frozen=True)
class Versions:
    """A cluster with both versions' images, and their manifests."""

    cluster: Kubectl
    here: Kubectl
    before: Path

    def start(self, manifest: Path) -> None:
        """Apply a version's manifest, and return when its replicas are ready."""
        self.cluster.run("apply", "-f", str(manifest))
        Operator(self.cluster.within("mpi-operator")).wait_until_ready()


def checkout(commit: str, folder: Path) -> Path:
    archive = folder / "before.tar"
    subprocess.run(["git", "-C", str(ROOT), "archive", f"--output={archive}", commit], check=True)
    copy = folder / "before"
    copy.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(copy)], check=True)
    return copy


def build_before(copy: Path, folder: Path) -> Path:
    """Build the operator's image of another checkout, and return its archive."""
    command = [sys.executable, "hack/images", "build", "--only=operator", f"--release-version={TAG}", f"--save={folder}"]
    subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": ""}, check=True, stdout=subprocess.DEVNULL)
    return folder / "operator.tar"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Versions]:
    if IS_CURRENT:
        pytest.skip("the user's own cluster is not switched to another version and back")
    if not (commit := version_before()):
        pytest.skip("the history of the checkout does not reach the version before")
    folder = tmp_path_factory.mktemp("upgrade")
    copy = checkout(commit, folder)
    text = (copy / DEPLOY).read_text(encoding="utf-8")
    manifest = folder / "before.yaml"
    manifest.write_text(re.sub(r"( image: \S+/mpi-operator:)v", rf"\1{TAG} # v", text), encoding="utf-8")
    with output_shown(request), embedded_cluster(CLUSTER) as cluster:
        sys.stderr.write(f"\nthe version before: {git('log', '--max-count=1', '--format=%h %s', commit)}\n")
        load_images(CLUSTER)
        load_archives(CLUSTER, build_before(copy, folder))
        with new_namespace(cluster, "upgrade", request.session) as here:
            yield Versions(cluster, here, manifest)


@pytest.fixture(scope="module")
def up(versions: Versions) -> Handover:
    """From the version before to this one."""
    versions.start(versions.before)
    handover = begin(versions.cluster, versions.here, "up", KEPT)
    versions.start(ROOT / DEPLOY)
    handover.see_through()
    return handover


@pytest.fixture(scope="module")
def down(versions: Versions, up: Handover) -> Handover:
    """From this version to the one before."""
    assert up.ended
    handover = begin(versions.cluster, versions.here, "down", KEPT)
    versions.start(versions.before)
    handover.see_through()
    return handover


@pytest.fixture(params=["up", "down"])
def handover(request: pytest.FixtureRequest) -> Handover:
    found: Handover = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("name", KEPT)
def test_every_object_is_taken_over_and_none_is_made_anew(name: str, handover: Handover) -> None:
    before, after = handover.children_of(handover.before, name), handover.children_of(handover.after, name)
    assert after <= before
    assert name not in GO_ON or after == before


def test_no_pod_is_restarted(handover: Handover) -> None:
    handover.assert_no_restart()


@pytest.mark.parametrize("name", KEPT)
def test_every_job_comes_to_its_right_end(name: str, handover: Handover) -> None:
    handover.assert_right_end(name)


def test_the_times_that_are_stored_stay(handover: Handover) -> None:
    handover.assert_times_stay()


def test_each_end_is_reported_once(handover: Handover) -> None:
    assert handover.events("MPIJobSucceeded") == dict.fromkeys([name for name in KEPT if name not in ENDS], 1)
