"""`kubectl mpi` in a namespace: the plug-in of this checkout, found by kubectl in the PATH."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from e2e.clusters import ROOT
from e2e.commands import Ended, ended
from e2e.kubectl import Kubectl


@dataclass(frozen=True)
class Tool:
    """The plug-in in a namespace; its environment has a kubeconfig of its own."""

    here: Kubectl
    environment: dict[str, str] = field(repr=False)

    def attempt(self, *arguments: str, stdin: str = "") -> Ended:
        return ended(["kubectl", "mpi", *arguments], self.environment, stdin=stdin, folder=ROOT)

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run a verb that must succeed, and return its output."""
        done = self.attempt(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def new_tool(here: Kubectl, folder: Path) -> Tool:
    """Return the plug-in with a kubeconfig in `folder` whose current namespace is that of `here`."""
    config = yaml.safe_load(here.run("config", "view", "--minify", "--raw", "--flatten"))
    config["contexts"][0]["context"]["namespace"] = here.namespace
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{here.environment['PATH']}"
    return Tool(here, {**here.environment, "PATH": path, "KUBECONFIG": str(kubeconfig), "MPIOP_CONFIG": os.devnull})
