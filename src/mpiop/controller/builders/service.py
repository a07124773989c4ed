"""The headless Service."""

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.implementations import implementation_of
from mpiop.kube.objects import Object


def publishes_unready(job: MPIJob) -> bool:
    """Tell whether the names of pods that are not Ready are wanted, too.

    The launcher is unready while it waits, and for a moment after. As a worker it has to find itself in its hostfile then, and daemons of
    Hydra ask for it as soon as they run: a name that is asked for too early is refused for up to 30 s.
    """
    return job.run_launcher_as_worker or implementation_of(job).calls_back


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
