"""The headless Service."""

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.kube.objects import Object


def build_service(job: MPIJob) -> Object:
    """Return the Service that gives every Ready pod of `job` a DNS name; with the launcher as a worker, unready ones too.

    (Such a launcher is unready while it waits, and has to find itself in its hostfile.)
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.child_metadata(job, names.service_name(job)),
        "spec": {
            "clusterIP": "None",
            "selector": names.selector(job),
            "publishNotReadyAddresses": job.run_launcher_as_worker,
        },
    }
