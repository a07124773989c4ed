"""The real `helm` as Python, and the Helm chart of this checkout."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from e2e.clusters import ROOT
from e2e.commands import Ended, ended
from e2e.kubectl import CommandError, Kubectl, Obj
from e2e.neighbours import build_program

CHART = "charts/mpiop"
RELEASE = "mpi-operator"
TEMPLATE = ("template", "--namespace", RELEASE, "--values", "-")
VERSIONS = ("helm", "helm3")
"""Programs of hack/embedded/parts.py: Helm 4 and Helm 3."""


@dataclass(frozen=True)
class Helm:
    """`helm` on a cluster, in a folder that has the chart."""

    environment: Mapping[str, str] = field(repr=False)
    folder: Path

    def attempt(self, *arguments: str, stdin: str = "") -> Ended:
        return ended(["helm", *arguments], self.environment, stdin=stdin, folder=self.folder, timeout_seconds=180)

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run helm and return what it printed.

        Raises:
            CommandError: It failed.
        """
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode:
            raise CommandError(f"helm {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def render(self, *options: str, values: Mapping[str, Any]) -> list[Obj]:
        """Return the objects of the chart with `values` as `helm template` renders them."""
        printed = self.run(*TEMPLATE, *options, RELEASE, CHART, stdin=json.dumps(values))
        return [each for each in yaml.load_all(printed, Loader=yaml.CSafeLoader) if each]

    def refusal(self, values: Mapping[str, Any]) -> str:
        """Return the error with which helm refuses `values`; "" if it takes them."""
        done = self.attempt(*TEMPLATE, RELEASE, CHART, stdin=json.dumps(values))
        return done.stderr.strip() if done.returncode else ""


def helm_of(program: str, cluster: Kubectl, folder: Path) -> Helm:
    """Return the helm that `program` of hack/embedded/parts.py is, as `helm` in the PATH; it may write to `folder`."""
    (folder / "bin").mkdir()
    (folder / "bin" / "helm").symlink_to(build_program(program))
    own = {f"HELM_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    environment = {**cluster.environment, **own, "PATH": f"{folder / 'bin'}:{cluster.environment['PATH']}"}
    return Helm(environment, ROOT)
