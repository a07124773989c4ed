"""The jobs that are measured, and what the operator makes of each, built by the operator's own builders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from bench.scenarios import Scenario
from mpiop.api import constants as c
from mpiop.api.parse import parse_mpijob
from mpiop.api.status import status_to_wire
from mpiop.api.types import MPIJobStatus
from mpiop.clock import format_time
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.ssh_secret import build_ssh_secret
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.desired import desired
from mpiop.controller.plan.diff import Create, diff
from mpiop.controller.status import conditions
from mpiop.controller.write.ssh_keys import KEY_TYPES, generate_key_pair
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import EVENTS, MPIJOBS, SECRETS, Resource

_SOME_UID: Final = "00000000-40d5-491e-99b0-da01ff1f3341"
_VARIABLES: Final = [{"name": f"VARIABLE_{number}", "value": "value" * 4} for number in range(5)]
_RESOURCES: Final = {"requests": {"cpu": "10m", "memory": "16Mi"}}


@dataclass(frozen=True, slots=True)
class Child:
    """An object to be created."""

    resource: Resource
    body: Object


@dataclass(frozen=True, slots=True)
class Report:
    """One thing that is told of a job.

    Attributes:
        status: As a patch, with all that was told before.
    """

    status: Mapping[str, Any]
    event: Object


def job_name(number: int) -> str:
    """Return the name of the job with that number; the names of its pods begin with it and a dash."""
    return f"job{number:04d}"


def job_of_pod(name: str) -> str:
    """Return the name of the job that the pod `name` belongs to."""
    return name.partition("-")[0]


def mpijob(scenario: Scenario, namespace: str, number: int) -> Object:
    """Return a job as a user writes it: with resources and variables, and workers that go when it ends."""
    made: Any = {
        "apiVersion": MPIJOBS.api_version,
        "kind": MPIJOBS.kind,
        "metadata": {"namespace": namespace, "name": job_name(number)},
        "spec": {
            "runPolicy": {"cleanPodPolicy": c.CLEAN_RUNNING},
            "mpiReplicaSpecs": {
                c.LAUNCHER: {"replicas": 1, "template": _template("launcher", scenario)},
                c.WORKER: {"replicas": scenario.workers, "template": _template("worker", scenario)},
            },
        },
    }
    return cast("Object", made)


def _template(name: str, scenario: Scenario) -> dict[str, Any]:
    container: dict[str, Any] = {"name": name, "image": "example.com/mpi-pi:1", "env": _VARIABLES, "resources": _RESOURCES}
    if name == "launcher":
        container |= {"command": ["mpirun", "-n", str(scenario.workers), "/home/mpiuser/pi"]}
    annotations = {"mpiop.test/complete-after": f"{scenario.launcher_seconds:g}s"}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}


def children(stored: Object) -> Sequence[Child]:
    """Return what the operator creates for the job `stored`, byte for byte but for the key pair."""
    job, options, nothing = parse_mpijob(stored), BuildOptions(), Observed()
    wanted = desired(job, nothing)
    if wanted is None:
        raise ValueError(f"{job.key}: nothing would be created for it")
    secret = build_ssh_secret(job, generate_key_pair(KEY_TYPES[0]))
    stages = sorted(diff(job, wanted, nothing, secret_uid=_SOME_UID, options=options), key=lambda stage: stage.step)
    actions = [action for stage in stages for action in stage.actions]
    return [Child(SECRETS, secret), *(Child(action.resource, action.build()) for action in actions if isinstance(action, Create))]


def reports(stored: Object) -> Sequence[Report]:
    """Return what an operator tells of the job `stored` until it has Succeeded."""
    job, now, rows = parse_mpijob(stored), datetime.now(UTC), list[Report]()
    told, time = MPIJobStatus(start_time=now), format_time(now)
    for type_ in (c.CONDITION_CREATED, c.CONDITION_RUNNING, c.CONDITION_SUCCEEDED):
        reason, message = f"MPIJob{type_}", f"MPIJob {job.key} is {type_}."
        told = replace(told, conditions=(*told.conditions, conditions.make(type_, "True", reason, message, now)))
        event: Any = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": job.namespace, "name": f"{job.name}.{type_.lower()}"},
            "involvedObject": {"apiVersion": MPIJOBS.api_version, "kind": MPIJOBS.kind, "namespace": job.namespace, "name": job.name},
            "type": "Normal",
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": time,
            "lastTimestamp": time,
        }
        rows.append(Report({"status": status_to_wire(told)}, cast("Object", event)))
    return rows


def foreign_pod(namespace: str, number: int) -> Object:
    """Return a pod of somebody else, which no scheduler takes, so that it stays as it is."""
    made: Any = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": f"foreign-{number:05d}", "labels": {"app": "foreign"}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "example.com/foreign:1", "env": _VARIABLES}]},
    }
    return cast("Object", made)


def key(namespace: str, number: int) -> Key:
    """Return the key of the job with that number."""
    return Key(namespace, job_name(number))
