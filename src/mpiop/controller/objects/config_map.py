"""The ConfigMap that is mounted at `/etc/mpi` of the launcher."""

import hashlib
from collections.abc import Iterable

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.hostfile import DISCOVER_HOSTS, HOSTFILE, render_discover_hosts, render_hostfile
from mpiop.kube.objects import Object

_DIGEST_BYTES = 16


def build_config_map(job: MPIJob, running_workers: Iterable[str], options: BuildOptions) -> Object:
    """Return the ConfigMap with the hosts of `job`.

    Its data has the keys that the reference operator writes and no other, so that a job may pass from one operator to the other.

    Args:
        job: Says which workers are desired.
        running_workers: Names of the worker pods in phase Running, in any order.
        options: For the cluster domain.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.child_metadata(job, names.config_map_name(job)),
        "data": {
            HOSTFILE: render_hostfile(job, options.cluster_domain),
            DISCOVER_HOSTS: render_discover_hosts(job, running_workers, options.cluster_domain),
        },
    }


def with_digests(config_map: Object) -> Object:
    """Return `config_map` with a digest in the place of each file that we write, and without any other data: that is what is kept of it.

    A ConfigMap may have a mebibyte, and a job of 10,000 workers needs that.
    """
    data = config_map.get("data") or {}
    digests: dict[str, str] = {name: _digest(data[name]) for name in (HOSTFILE, DISCOVER_HOSTS) if name in data}
    return {**config_map, "data": digests}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
