"""`kubectl mpi` in a namespace: the plug-in of this checkout, found by kubectl in the PATH."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from e2e.clusters import ROOT
from e2e.kubectl import Kubectl
from e2e.libraries import without_noise


@dataclass(frozen=True)
class Tool:
    """The plug-in in a namespace; its environment has a kubeconfig of its own."""

    here: Kubectl
    environment: dict[str, str] = field(repr=False)

    def attempt(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a verb and return how it ended."""
        return subprocess.run(
            ["kubectl", "mpi", *arguments],
            cwd=ROOT,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run a verb that must succeed, and return its output."""
        done = self.attempt(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return without_noise(done.stdout)


def new_tool(here: Kubectl, folder: Path) -> Tool:
    """Return the plug-in with a kubeconfig in `folder` whose current namespace is that of `here`."""
    config = yaml.safe_load(here.run("config", "view", "--minify", "--raw", "--flatten"))
    config["contexts"][0]["context"]["namespace"] = here.namespace
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{here.environment['PATH']}"
    return Tool(here, {**here.environment, "PATH": path, "KUBECONFIG": str(kubeconfig), "MPIOP_CONFIG": os.devnull})
