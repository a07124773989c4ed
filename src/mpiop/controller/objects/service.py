"""The headless Service."""

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects.launcher_environment import asks_for_launcher
from mpiop.kube.objects import Object


def publishes_unready(job: MPIJob) -> bool:
    """Return whether pods that are not Ready need DNS names too.

    As a worker the launcher has to find itself in its hostfile as soon as it runs, and on the nodes' network daemons of Hydra ask for it:
    a name that is asked for too early is refused for up to 30 s.
    """
    return job.run_launcher_as_worker or asks_for_launcher(job)


def build_service(job: MPIJob) -> Object:
    """Return the Service that gives every Ready pod of `job` a DNS name, and unready ones too where the launcher must be found at once."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.child_metadata(job, names.service_name(job)),
        "spec": {
            "clusterIP": "None",
            "selector": names.selector(job),
            "publishNotReadyAddresses": publishes_unready(job),
        },
    }
