"""Gang scheduling, of which there is no recording: jobs whose PodGroups are then compared with what Kubeflow's code does.

The definitions of the PodGroups take any field: that the real ones take ours is shown on clusters with Volcano and the coscheduling plugin.
"""

import contextlib
import copy
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

from conformance.control_plane import ControlPlane
from conformance.recordings import recorded_cases
from e2e.waiting import until
from faults.testbed import make_namespace
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import COSCHEDULING_POD_GROUPS, MPIJOBS, PRIORITY_CLASSES, VOLCANO_POD_GROUPS, Resource, Selection

VOLCANO, COSCHEDULING = "volcano", "our-scheduler"
GROUPS: Mapping[str, Resource] = {VOLCANO: VOLCANO_POD_GROUPS, COSCHEDULING: COSCHEDULING_POD_GROUPS}
PLAIN, SAID, WAITING = "plain", "said", "waiting"
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)


@dataclass(frozen=True, slots=True)
class Gangs:
    """What there was with one scheduler.

    Attributes:
        groups: PodGroups by name.
        pods: All Pods.
        groups_after: PodGroups after `PLAIN` was suspended and `WAITING`, which was created suspended, resumed.
    """

    groups: Mapping[str, Mapping[str, Any]]
    pods: Sequence[Mapping[str, Any]]
    groups_after: Mapping[str, Mapping[str, Any]]


async def define_pod_groups(here: ControlPlane) -> None:
    """Let the API server know PodGroups of both kinds, and a PriorityClass `high`."""
    for resource in GROUPS.values():
        await here.client.create(_DEFINITIONS, _definition(resource))
    body: Any = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    await here.client.create(PRIORITY_CLASSES, cast("Object", body))
    for resource in GROUPS.values():
        await until(f"{resource.group}", lambda resource=resource: _is_served(here, resource))


async def live_as_gangs(here: ControlPlane, scheduler: str) -> Gangs:
    """Return what an operator with that `--gang-scheduling` makes."""
    namespace = f"{scheduler}-gang"
    async with here.operator(scheduler, (f"--gang-scheduling={scheduler}",)):
        await make_namespace(here.client, namespace)
        for job in _jobs(namespace):
            await here.client.create(MPIJOBS, cast("Object", job))
        groups, pods = await _look(here, namespace, GROUPS[scheduler], {PLAIN, SAID})
        for name, suspend in ((PLAIN, True), (WAITING, False)):
            await here.client.patch(MPIJOBS, Key(namespace, name), {"spec": {"runPolicy": {"suspend": suspend}}})
        after, _ = await _look(here, namespace, GROUPS[scheduler], {SAID, WAITING})
        return Gangs(groups, pods, after)


async def _look(
    here: ControlPlane, namespace: str, resource: Resource, names: AbstractSet[str]
) -> tuple[Mapping[str, Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the PodGroups by name, and all Pods: once there are the groups with those names, and nothing changes any more."""

    async def groups() -> dict[str, Mapping[str, Any]]:
        page = await here.client.list_page(Selection(resource, namespace), resource_version="")
        return {each["metadata"].get("name", ""): cast("Mapping[str, Any]", each) for each in page["items"]}

    async def are_there() -> bool:
        return set(await groups()) == names

    with contextlib.suppress(TimeoutError):  # a test shows what is there instead
        await until("the PodGroups", are_there)
    await here.follower.until_quiet(namespace)
    return await groups(), (await here.follower.objects(namespace))["Pod"]


def _jobs(namespace: str) -> list[dict[str, Any]]:
    [recorded] = [case for case in recorded_cases() if case.name == "openmpi"]
    jobs: list[dict[str, Any]] = []
    for name in (PLAIN, SAID, WAITING):
        job: Any = copy.deepcopy(dict(recorded.mpijob))
        job["metadata"] |= {"name": name, "namespace": namespace}
        roles = job["spec"]["mpiReplicaSpecs"]
        launcher, worker = (roles[role]["template"]["spec"] for role in ("Launcher", "Worker"))
        launcher["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
        worker["containers"][0]["resources"] = {
            "requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"memory": "2Gi", "example.com/gpu": 1},
        }
        worker["priorityClassName"] = "high"
        jobs.append(job)
    plain, said, waiting = jobs
    plain["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "annotated"}
    policy = {"minAvailable": 2, "queue": "q", "minResources": {"cpu": "3"}, "priorityClass": "top", "scheduleTimeoutSeconds": 30}
    said["spec"]["runPolicy"] = {"schedulingPolicy": policy}
    waiting["spec"]["runPolicy"] = {"suspend": True, "schedulingPolicy": {"minAvailable": 2}}
    return jobs


def _definition(resource: Resource) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": resource.plural, "singular": "podgroup", "kind": resource.kind, "listKind": f"{resource.kind}List"}
    metadata = {"name": f"{resource.plural}.{resource.group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}
    spec = {"group": resource.group, "names": names, "scope": "Namespaced", "versions": [version]}
    body: Any = {"apiVersion": _DEFINITIONS.api_version, "kind": _DEFINITIONS.kind, "metadata": metadata, "spec": spec}
    return cast("Object", body)


async def _is_served(here: ControlPlane, resource: Resource) -> bool:
    try:
        await here.client.list_page(Selection(resource, "default"), resource_version="0")
    except StatusError as error:
        if error.is_not_found:
            return False
        raise
    return True
