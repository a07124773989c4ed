"""The headless Service."""

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.kube.objects import Object


def build_service(job: MPIJob) -> Object:
    """Return the Service that gives every Ready pod of `job` a DNS name, and unready ones too where the launcher must be found at once.

    As a worker the launcher has to find itself in its hostfile as soon as it runs, and on the nodes' network daemons of Hydra ask for it:
    a name that is asked for too early is refused for up to 30 s.
    """
    is_found_at_once = job.run_launcher_as_worker or (bool(job.library.interface_variable) and job.uses_host_network)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.child_metadata(job, job.service_name),
        "spec": {
            "clusterIP": "None",
            "selector": names.selector(job.name),
            "publishNotReadyAddresses": is_found_at_once,
        },
    }
