"""Calls kubectl for what the API of the client does not do: it runs commands in a launcher."""

import shutil
from collections.abc import Sequence

from mpiop.client.allocation import Launcher
from mpiop.client.errors import ClientError
from mpiop.client.job import Job


def kubectl_program() -> str:
    """Return the path of kubectl.

    Raises:
        ClientError: It is not in the PATH.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise ClientError("kubectl is not in the PATH, and this needs it; install it")
    return program


def exec_command(cluster: Sequence[str], job: Job, launcher: Launcher, *options: str) -> list[str]:
    """Return the words of `kubectl exec` for the launcher of an allocation; `--` and a command follow.

    Args:
        cluster: Options of kubectl that select the cluster.
        job: The allocation.
        launcher: Of it.
        options: Of `kubectl exec`.
    """
    return [
        kubectl_program(),
        "exec",
        *options,
        f"--namespace={job.namespace}",
        *cluster,
        launcher.pod,
        f"--container={launcher.container}",
    ]
