"""Which cluster the tests run on, and how it comes and goes."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from demonstration.cluster import ROOT, environment_of
from e2e.kubectl import Kubectl

__all__ = ["ROOT", "embedded_cluster", "output_shown", "paused", "project"]


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
def paused(component: str, name: str) -> Iterator[None]:
    """Let a component of the embedded cluster `name` stand still meanwhile."""
    project("hack/cluster", "pause", "--name", name, component)
    try:
        yield
    finally:
        project("hack/cluster", "resume", "--name", name, component)
