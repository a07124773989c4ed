"""Whose an object is: the job's only in its namespace, and by group, kind and UID of its controller; a worker by its name, too."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from example_children import LAUNCHER_UID, config_map, launcher, launcher_pod, service, stored, worker
from example_jobs import PI
from fakes.api_server import FakeClient
from fakes.world import new
from mpiop.controller.controller import job_of
from mpiop.controller.errors import PredecessorError, ResourceExistsError
from mpiop.controller.gang.pod_group import build_volcano_pod_group
from mpiop.controller.observe.observed import BY_CONTROLLER, Listers, Observed, index_by_controller, observe
from mpiop.informers.store import Store
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES, VOLCANO_POD_GROUPS, Resource
from unit.controller.write.test_apply import OWNER, applier

TENANT = "tenant"


@dataclass(frozen=True)
class Child:
    """A kind of child: an example of it, and where an observation shows it."""

    resource: Resource
    example: Object
    field: str


CHILDREN = (
    Child(SERVICES, service(), "service"),
    Child(CONFIG_MAPS, config_map(), "config_map"),
    Child(JOBS, launcher(), "launcher"),
    Child(PODS, worker(0), "workers"),
    Child(PODS, launcher_pod(), "launcher_pods"),
    Child(VOLCANO_POD_GROUPS, stored(build_volcano_pod_group(PI, {}), "group"), "gang"),
)

FOREIGN: dict[str, dict[str, Any]] = {
    "another namespace": {"namespace": TENANT},
    "another group": {"owner": {"apiVersion": "example.com/v2beta1"}},
    "the core group": {"owner": {"apiVersion": "v2beta1"}},
    "another kind": {"owner": {"kind": "Deployment"}},
    "another UID": {"owner": {"uid": "another"}},
    "an owner that is no controller": {"owner": {"controller": False}},
}


def changed(obj: Object, *, owner: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """Return `obj` with other metadata, and another owner reference."""
    reference = {**obj["metadata"]["ownerReferences"][0], **(owner or {})}
    return {**deepcopy(obj), "metadata": {**obj["metadata"], **metadata, "ownerReferences": [reference]}}  # type: ignore[typeddict-item]


def observe_objects(*objects: tuple[Resource, Object]) -> Observed:
    """Return what is observed of the example job where these objects are in the stores."""
    resources = (SERVICES, CONFIG_MAPS, JOBS, PODS, VOLCANO_POD_GROUPS)
    stores = {resource: Store({BY_CONTROLLER: index_by_controller}) for resource in resources}
    for resource, obj in objects:
        stores[resource].put(obj)
    gang = {VOLCANO_POD_GROUPS: stores[VOLCANO_POD_GROUPS]}
    return observe(PI, Listers(stores[SERVICES], stores[CONFIG_MAPS], stores[JOBS], stores[PODS], gang=gang))


def around(child: Child) -> tuple[tuple[Resource, Object], ...]:
    """Return what has to be there for `child` to be seen: the launcher Job of a launcher's pod."""
    return ((JOBS, launcher()),) if child.field == "launcher_pods" else ()


@pytest.mark.parametrize("child", CHILDREN, ids=lambda child: child.field)
def test_the_children_of_a_job_are_seen(child: Child) -> None:
    assert getattr(observe_objects(*around(child), (child.resource, child.example)), child.field)


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("child", CHILDREN, ids=lambda child: child.field)
def test_E57_what_belongs_to_somebody_else_is_none(child: Child, foreign: dict[str, Any]) -> None:
    assert not getattr(observe_objects(*around(child), (child.resource, changed(child.example, **foreign))), child.field)


@pytest.mark.parametrize("version", ["v1", "v2beta2"])
def test_another_version_of_the_api_is_the_same_owner(version: str) -> None:
    assert observe_objects((SERVICES, changed(service(), owner={"apiVersion": f"kubeflow.org/{version}"}))).service


@pytest.mark.parametrize(
    ("name", "is_worker"),
    [
        ("pi-worker-0", True),
        ("pi-worker-17", True),
        ("pi-worker-01", False),
        ("pi-worker-", False),
        ("pi-worker-x", False),
        ("pi-worker-1-2", False),
        ("another-worker-0", False),
        ("pi-launcher-x", False),
    ],
)
def test_a_worker_has_the_name_of_one(name: str, is_worker: bool) -> None:  # noqa: FBT001 - a column of the table
    assert list(observe_objects((PODS, changed(worker(0), name=name))).workers) == ([name] if is_worker else [])


@pytest.mark.parametrize("foreign", [{}, *list(FOREIGN.values())[1:]], ids=["its own", *list(FOREIGN)[1:]])
async def test_an_object_that_is_read_live_is_judged_alike(foreign: dict[str, Any]) -> None:
    client = FakeClient()
    client.server.put(SERVICES, changed(service(), **foreign))
    error = PredecessorError if foreign == FOREIGN["another UID"] else ResourceExistsError
    with pytest.raises(error) if foreign else nullcontext():
        await applier(client).find_ours(OWNER, SERVICES, PI.key)


def test_an_event_concerns_the_job_in_its_own_namespace() -> None:
    assert job_of(changed(worker(0), namespace=TENANT)) == Key(TENANT, "pi")
    assert job_of(changed(worker(0), labels={}, owner={"apiVersion": "example.com/v1"})) is None


async def test_a_tenant_cannot_fail_the_job_of_another_nor_keep_its_workers_from_being_made() -> None:
    world = await new()
    await world.sync()
    world.client.server.remove(PODS, Key("default", "pi-worker-0"))
    # The tenant has read the UIDs of the job and of its launcher Job, and knows its labels.
    job_uid, launcher_uid = uid_of(world.one(MPIJOBS, "pi")), uid_of(world.one(JOBS, "pi-launcher"))
    assert launcher_uid != LAUNCHER_UID
    world.client.server.put(PODS, changed(worker(0, "Failed", reason="Evicted"), namespace=TENANT, owner={"uid": job_uid}))
    world.client.server.put(PODS, changed(launcher_pod("Failed"), namespace=TENANT, owner={"uid": launcher_uid}))
    await world.sync_until_idle()
    own = {obj["metadata"]["name"] for obj in world.client.server.objects(PODS) if obj["metadata"].get("namespace") == "default"}
    assert own == {"pi-worker-0", "pi-worker-1"}
    await world.run_job()
    assert not world.status.is_finished
    await world.end()
    assert world.status.is_true("Succeeded")
