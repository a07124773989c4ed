"""Where the demo runs: an embedded cluster of its own, or the user's current context when asked for by MPIOP_CLUSTER=current."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from demonstration.loading import Loader, loader_of
from demonstration.screen import DemoError, Screen

ROOT = Path(__file__).resolve().parents[2]
NAME = "demo"
CURRENT = "current"


@dataclass(frozen=True)
class Cluster:
    """A cluster that kubectl reaches in `environment`.

    Attributes:
        is_current: Whether it is the user's own.
        loader: What puts images on the nodes of the user's cluster; None if they must pull them.
    """

    is_current: bool
    environment: Mapping[str, str] = field(repr=False)
    loader: Loader | None = None

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl and return what it printed.

        Raises:
            DemoError: It failed.
        """
        ended = subprocess.run(["kubectl", *arguments], env=self.environment, input=stdin, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise DemoError(f"kubectl {' '.join(arguments)} failed: {ended.stderr.strip() or ended.stdout.strip()}")
        return ended.stdout


def is_current_desired() -> bool:
    """Return whether the user asked for the current kubeconfig context.

    Raises:
        DemoError: MPIOP_CLUSTER reports something else.
    """
    desired = os.environ.get("MPIOP_CLUSTER", "")
    if desired not in {"", CURRENT}:
        raise DemoError(
            f"MPIOP_CLUSTER={desired}: leave it out for an embedded cluster, or say {CURRENT} for the current kubeconfig context"
        )
    return desired == CURRENT


def current_cluster(screen: Screen) -> Cluster:
    """Return the cluster of the current kubeconfig context, and print which it is.

    Raises:
        DemoError: There is no kubectl, no context, or no answer.
    """
    if not shutil.which("kubectl"):
        raise DemoError("MPIOP_CLUSTER=current needs kubectl in PATH; install it, or leave MPIOP_CLUSTER out for an embedded cluster")
    cluster = Cluster(is_current=True, environment=dict(os.environ))
    try:
        context = cluster.kubectl("config", "current-context").strip()
    except DemoError as error:
        raise DemoError("MPIOP_CLUSTER=current, but no context is set; choose one with: kubectl config use-context NAME") from error
    cluster.kubectl("get", "--raw", "/readyz")
    screen.line(f"using the current context {context}")
    return replace(cluster, loader=loader_of(context))


def embedded_cluster(screen: Screen) -> Cluster:
    """Bring the embedded cluster up, or find it up, and return it.

    Raises:
        DemoError: It did not come up.
    """
    run_project("the cluster did not start; the reason is above", "hack/cluster", "up", "--name", NAME)
    screen.line("a Node is Ready")
    return Cluster(is_current=False, environment=environment_of(NAME))


def environment_of(name: str) -> dict[str, str]:
    """Return the environment in which kubectl reaches the embedded cluster `name`, and no other."""
    script = f'eval "$(hack/cluster env --name {shlex.quote(name)})" && env -0'
    bare = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    printed = subprocess.run(["bash", "-c", script], cwd=ROOT, env=bare, check=True, capture_output=True, text=True).stdout
    return dict(entry.split("=", 1) for entry in printed.split("\0") if entry)


def run_project(otherwise: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run one of the project's own commands, which shows its own progress on standard error; what it prints else is dropped.

    Raises:
        DemoError: It failed; the message is `otherwise`.
    """
    sys.stdout.flush()
    if subprocess.run(arguments, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode:
        raise DemoError(otherwise)
