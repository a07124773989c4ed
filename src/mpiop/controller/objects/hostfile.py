"""The two files that list the workers for programs on the launcher."""

from collections.abc import Iterable
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller import names

CONFIG_MOUNT_PATH: Final = "/etc/mpi"
HOSTFILE: Final = "hostfile"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
HOSTFILE_PATH: Final = f"{CONFIG_MOUNT_PATH}/{HOSTFILE}"


def render_hostfile(job: MPIJob, cluster_domain: str) -> str:
    """Render the list of hosts that `mpirun` reads.

    Args:
        job: `slots_per_worker` counts processes, not cores.
        cluster_domain: Without outer dots; "" leaves it out.

    Returns:
        One line a host: the launcher with `run_launcher_as_worker`, then every desired worker by index, whatever its phase. "" when
        there is none. The MPI library decides the form of a line.
    """
    pods = list(names.worker_names(job))
    if job.run_launcher_as_worker:
        pods.insert(0, names.launcher_name(job))
    hosts = (names.host(job, pod, cluster_domain) for pod in pods)
    return "".join(f"{job.library.host_line.format(host=host, slots=job.slots_per_worker)}\n" for host in hosts)


def render_discover_hosts(job: MPIJob, running_workers: Iterable[str], cluster_domain: str) -> str:
    """Render the script that elastic programs (Horovod) call to learn which hosts there are now.

    Args:
        job: With `run_launcher_as_worker`, the launcher comes first, running or not: it is the one who asks.
        running_workers: Names of the worker pods in phase Running, in any order.
        cluster_domain: Without outer dots; "" leaves it out.

    Returns:
        A shell script that prints one host a line, workers sorted as strings: worker-10 before worker-2.
    """
    pods = sorted(running_workers)
    if job.run_launcher_as_worker:
        pods.insert(0, names.launcher_name(job))
    return "#!/bin/sh\n" + "".join(f"echo {names.host(job, pod, cluster_domain)}\n" for pod in pods)
