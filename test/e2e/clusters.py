"""Which cluster the tests run on, how it comes and goes, and what is put on it."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from demonstration.cluster import ROOT, Cluster, environment_of, is_current_desired
from demonstration.operator_images import apply_operator, built_archives
from e2e.kubectl import Kubectl

__all__ = ["ROOT", "embedded_cluster", "output_shown", "paused", "project"]

IS_CURRENT: Final = is_current_desired()
"""Whether the tests run on the user's own cluster."""


def project(*arguments: str) -> None:
    """Run one of the project's own commands; what it prints goes to the terminal."""
    subprocess.run(arguments, cwd=ROOT, check=True, stdin=subprocess.DEVNULL)


def output_shown(request: pytest.FixtureRequest) -> contextlib.AbstractContextManager[None]:
    """Show what is printed meanwhile as it comes: from a cold machine, a cluster or a build takes minutes."""
    manager: Any = request.config.pluginmanager.getplugin("capturemanager")
    shown: contextlib.AbstractContextManager[None] = manager.global_and_fixture_disabled()
    return shown


@contextlib.contextmanager
def embedded_cluster(name: str, *options: str) -> Iterator[Kubectl]:
    """Yield kubectl on an embedded cluster, taken down at the end unless MPIOP_E2E_KEEP is set."""
    try:
        project("hack/cluster", "up", "--name", name, *options)
        yield Kubectl(environment_of(name))
    finally:
        if not os.environ.get("MPIOP_E2E_KEEP"):
            project("hack/cluster", "down", "--name", name)


@contextlib.contextmanager
def operator_cluster(name: str, request: pytest.FixtureRequest, *options: str) -> Iterator[Kubectl]:
    """Yield kubectl on an embedded cluster of a module's own, with the operator deployed, ready or not."""
    if IS_CURRENT:
        pytest.skip("the module has a cluster of its own: the user's gets no other programs, and its operator is left alone")
    with contextlib.ExitStack() as stack:
        with output_shown(request):
            cluster = stack.enter_context(embedded_cluster(name, *options))
            load_images(name)
        deploy_operator(cluster)
        yield cluster


def load_images(cluster: str, *names: str) -> None:
    """Build images of the catalogue (by default the operator and the example) and load them; skip the user's own cluster."""
    if not IS_CURRENT:
        load_archives(cluster, *built_archives(*names))


def load_archives(cluster: str, *archives: str | Path) -> None:
    project("hack/cluster", "load-image", "--name", cluster, *map(str, archives))


def deploy_operator(cluster: Kubectl) -> None:
    apply_operator(Cluster(is_current=IS_CURRENT, environment=cluster.environment))


@contextlib.contextmanager
def paused(component: str, name: str) -> Iterator[None]:
    """Let a component of the embedded cluster `name` stand still meanwhile."""
    project("hack/cluster", "pause", "--name", name, component)
    try:
        yield
    finally:
        project("hack/cluster", "resume", "--name", name, component)
