"""A gang scheduler that does not exist; to import this module adds it to the tables."""

from typing import Any, cast

from mpiop.api.gang_schedulers import GANG_SCHEDULERS, GangScheduler
from mpiop.api.types import MPIJob
from mpiop.controller.gang.members import Priorities
from mpiop.controller.gang.pod_group import PARTS, Part
from mpiop.kube.objects import Object
from mpiop.kube.resources import Resource

TROOPS = Resource("acme.example.com", "v1", "troops", "Troop")
ACME = GangScheduler(
    name="acme",
    title="Acme",
    apis=((TROOPS,),),
    pod_label="acme.example.com/troop",
    advice="install Acme",
)


def build_troop(job: MPIJob, _priorities: Priorities) -> Object:
    """Return the object of the gang."""
    return {"apiVersion": TROOPS.api_version, "kind": TROOPS.kind, "metadata": {"name": job.name}, "spec": {"size": job.worker_replicas}}


cast("dict[str, Any]", GANG_SCHEDULERS)[ACME.name] = ACME
cast("dict[Resource, Part]", PARTS)[TROOPS] = Part(TROOPS, build_troop, ("size",))
