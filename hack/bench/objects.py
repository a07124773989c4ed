"""The jobs that are measured, which run for a second on simulated nodes, and what the operator makes of each, built by its own builders."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from bench.scenarios import Kind, Scenario
from mpiop.api import constants as c
from mpiop.api.parse import parse_mpijob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.ssh_secret import build_ssh_secret
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.desired import desired_state
from mpiop.controller.plan.diff import Create, diff
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.write.ssh_keys import KEY_TYPES, generate_key_pair
from mpiop.kube.objects import Object
from mpiop.kube.resources import MPIJOBS, SECRETS, Resource

_SOME_UID: Final = "00000000-40d5-491e-99b0-da01ff1f3341"
_VARIABLES: Final = [{"name": f"VARIABLE_{number}", "value": "value" * 4} for number in range(5)]
_RESOURCES: Final = {"requests": {"cpu": "10m", "memory": "16Mi"}}


@dataclass(frozen=True, slots=True)
class Child:
    """An object to be created."""

    resource: Resource
    body: Object


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
    template: dict[str, Any] = {"spec": {"containers": [container]}}
    if name == "worker" and scenario.kind is Kind.BROKEN:
        template["spec"]["nodeSelector"] = {"mpiop.test/node": "none"}
    if scenario.start_seconds:  # and a launcher runs until they have started
        annotation = "mpiop.test/ready-within" if name == "worker" else "mpiop.test/complete-after"
        template["metadata"] = {"annotations": {annotation: f"{scenario.start_seconds}s"}}
    return template


def children(stored: Object) -> Sequence[Child]:
    """Return what the operator creates for the job `stored`, byte for byte but for the key pair."""
    job, options, nothing = parse_mpijob(stored), BuildOptions(), Observed()
    desired = desired_state(launcher_attempt(job, nothing), datetime.now(UTC))
    if desired is None:
        raise ValueError(f"{job.key}: nothing would be created for it")
    secret = build_ssh_secret(job, generate_key_pair(KEY_TYPES[0]))
    stages = sorted(diff(job, desired, nothing, secret_uid=_SOME_UID, options=options), key=lambda stage: stage.step)
    actions = [action for stage in stages for action in stage.actions]
    return [Child(SECRETS, secret), *(Child(action.resource, action.build()) for action in actions if isinstance(action, Create))]


def foreign_pod(namespace: str, number: int) -> Object:
    """Return a pod of somebody else, which no scheduler takes, so that it stays as it is."""
    made: Any = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": f"foreign-{number:05d}", "labels": {"app": "foreign"}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "example.com/foreign:1", "env": _VARIABLES}]},
    }
    return cast("Object", made)
