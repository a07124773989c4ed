"""The ConfigMap at `/etc/mpi` of the launcher: two files that list the workers, `hostfile` and `discover_hosts.sh`."""

import hashlib
from collections.abc import Iterable
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.kube.objects import Object

CONFIG_MOUNT_PATH: Final = "/etc/mpi"
HOSTFILE: Final = "hostfile"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
HOSTFILE_PATH: Final = f"{CONFIG_MOUNT_PATH}/{HOSTFILE}"
_DIGEST_BYTES: Final = 16


def build_config_map(job: MPIJob, running_workers: Iterable[str], options: BuildOptions) -> Object:
    """Return the ConfigMap with the hosts of `job`.

    `mpirun` reads the hostfile: one line for each desired worker, by index, whatever its phase. The MPI library decides the form of a line.
    Elastic programs (Horovod) call the script: it prints the workers that run, sorted as strings (worker-10 before worker-2). With
    `run_launcher_as_worker`, the launcher comes first in both, running or not.

    The data has the keys that the reference operator writes and no other, so that a job may pass from one operator to the other.

    Args:
        job: Its replicas are the desired workers.
        running_workers: Names of the worker pods in phase Running, in any order.
        options: For the cluster domain.
    """
    first = [job.launcher_name] if job.run_launcher_as_worker else []

    def hosts(workers: Iterable[str]) -> Iterable[str]:
        return (job.host(pod, options.cluster_domain) for pod in (*first, *workers))

    lines = (job.library.host_line.format(host=host, slots=job.slots_per_worker) for host in hosts(job.worker_names))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.child_metadata(job, job.config_map_name),
        "data": {
            HOSTFILE: "".join(f"{line}\n" for line in lines),
            DISCOVER_HOSTS: "#!/bin/sh\n" + "".join(f"echo {host}\n" for host in hosts(sorted(running_workers))),
        },
    }


def with_digests(config_map: Object) -> Object:
    """Return the projection of `config_map` that is cached: a digest instead of each file that we write, and no other data.

    A ConfigMap may have a mebibyte, and a job of 10,000 workers needs that.
    """
    data = config_map.get("data") or {}
    digests: dict[str, str] = {name: _digest(data[name]) for name in (HOSTFILE, DISCOVER_HOSTS) if name in data}
    return {**config_map, "data": digests}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
