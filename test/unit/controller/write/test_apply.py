"""Carrying writes out against a server that refuses, loses answers and has other people's objects."""

import asyncio
import contextlib
from typing import Any

import pytest

from example_jobs import PI
from fakes.api_server import FakeClient
from mpiop.controller.errors import PredecessorError, ResourceExistsError
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.consistency import Consistency
from mpiop.controller.plan.diff import Create, Delete, Patch
from mpiop.controller.write.apply import AT_ONCE, Applier, Owner
from mpiop.controller.write.contention import Contention
from mpiop.informers.store import Store
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, resource_version_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS
from virtual_time import VirtualClock, run_ready_tasks

OWNER = Owner(PI.key, PI.uid)


def pod(name: str, *, owner_uid: str = PI.uid, owner_name: str = "pi", **metadata: Any) -> Object:
    owner: Any = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": owner_name, "uid": owner_uid, "controller": True}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner], **metadata}}


def create(name: str) -> Create:
    return Create(PODS, Key("default", name), lambda: pod(name))


def applier(client: FakeClient, pods: Store | None = None) -> Applier:
    """Return an applier that has a cache of pods, or none."""
    caches = {} if pods is None else {PODS: pods}
    return Applier(client, Consistency(caches, VirtualClock(), JobMemory()), Contention(VirtualClock(), "us", JobMemory()))


async def test_E56_creates_start_slowly_and_stop_after_the_first_batch_with_an_error() -> None:
    client = FakeClient()
    client.refuse("create", PODS, "p-4", StatusError("create", {"code": 403, "message": "exceeded quota"}))
    failed = (await applier(client).apply(OWNER, [create(f"p-{index}") for index in range(20)])).failed
    assert [write.is_create for write in failed] == [True]
    assert [action.key.name for action in client.actions] == [f"p-{index}" for index in range(7)], "batches of 1, 2 and 4"


async def test_one_refused_write_does_not_stop_the_others() -> None:
    client = FakeClient()
    first, second = [client.server.put(PODS, pod(name)) for name in ("a", "b")]
    client.refuse("delete", PODS, "a", TransportError("lost"))
    failed = (await applier(client).apply(OWNER, [Delete(PODS, first), create("c"), Delete(PODS, second)])).failed
    assert [(str(write.error), write.is_create) for write in failed] == [("lost", False)]
    assert sorted(obj["metadata"]["name"] for obj in client.server.objects(PODS)) == ["a", "c"]


class UnansweringClient(FakeClient):
    """A server that accepts requests, and answers none of them until it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()

    async def create(self, *arguments: Any, **options: Any) -> Object:
        await self.answers.wait()
        return await super().create(*arguments, **options)

    async def delete(self, *arguments: Any, **options: Any) -> Object | None:
        await self.answers.wait()
        return await super().delete(*arguments, **options)


async def test_no_write_goes_on_after_a_defect_in_one_beside_it() -> None:
    client = UnansweringClient()
    stored = client.server.put(PODS, pod("a"))
    deletion, defect = Delete(PODS, stored), Patch(PODS, stored, {"metadata": None})
    with pytest.raises(ExceptionGroup, match="TaskGroup"):
        await applier(client).apply(OWNER, [deletion, defect])
    client.answers.set()
    await run_ready_tasks()
    assert client.actions == []


@pytest.mark.parametrize(
    ("existing", "error"),
    [
        (pod("a", owner_uid="former"), PredecessorError),
        (pod("a", finalizers=["example.com/x"]), PredecessorError),
        (pod("a", owner_uid="else", owner_name="other"), ResourceExistsError),
        ({**pod("a"), "metadata": {"name": "a", "namespace": "default"}}, ResourceExistsError),
    ],
    ids=["child of a former job of that name", "ours, on its way out", "another job's", "nobody's"],
)
async def test_E58_a_create_that_meets_another_object_says_whose(existing: Object, error: type[Exception]) -> None:
    client = FakeClient()
    stored = client.server.put(PODS, existing)
    if "finalizers" in existing["metadata"]:
        await client.delete(PODS, Key("default", "a"), uid=uid_of(stored))
    before = client.server.objects(PODS)
    with pytest.raises(error):
        await applier(client).perform(OWNER, create("a"))
    assert client.server.objects(PODS) == before, "it is not touched"


async def test_a_launcher_job_is_deleted_after_its_pods() -> None:
    client = FakeClient()
    stored = client.server.put(JOBS, {**pod("pi-launcher"), "apiVersion": "batch/v1", "kind": "Job"})
    left = await applier(client).perform(OWNER, Delete(JOBS, stored))
    assert left is not None
    assert left["metadata"]["finalizers"] == ["foregroundDeletion"]


@pytest.mark.parametrize(
    ("code", "body", "is_raised"),
    [
        pytest.param(403, {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}, True, id="is being deleted"),
        pytest.param(403, {"message": "a policy says no"}, False, id="a policy"),
        pytest.param(422, {"message": "a label is missing"}, False, id="a validating policy"),
        pytest.param(409, {"reason": "AlreadyExists"}, False, id="such a name exists"),
        pytest.param(503, {"message": "busy"}, True, id="nobody knows"),
        pytest.param(0, {}, False, id="it accepts one"),
    ],
)
async def test_E59_a_namespace_stays_unless_the_server_says_that_it_is_being_deleted(
    code: int, body: dict[str, Any], *, is_raised: bool
) -> None:
    client = FakeClient()
    if code:
        client.refuse("create", CONFIG_MAPS, "", StatusError("create", {"code": code, **body}))
    with pytest.raises(StatusError) if is_raised else contextlib.nullcontext():
        await applier(client).check_namespace(OWNER)
    assert client.server.objects(CONFIG_MAPS) == []


async def test_E57_a_successor_of_the_same_name_is_not_deleted() -> None:
    client = FakeClient()
    stored = client.server.put(PODS, pod("a"))
    client.server.remove(PODS, Key("default", "a"))
    successor = client.server.put(PODS, pod("a"))
    assert (await applier(client).apply(OWNER, [Delete(PODS, stored)])).failed == [], "what was to go is gone"
    assert client.server.objects(PODS) == [successor]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_deletion_that_is_refused_for_another_reason_has_failed_unless_the_object_is_gone(*, is_gone: bool) -> None:
    client = FakeClient()
    stored = client.server.put(PODS, pod("a"))
    refusal = StatusError("delete", {"code": 409, "reason": "Conflict", "message": "a webhook"})
    client.refuse("delete", PODS, "a", refusal, takes_effect=is_gone)
    assert len((await applier(client).apply(OWNER, [Delete(PODS, stored)])).failed) == (0 if is_gone else 1)


async def test_a_patch_that_is_right_for_any_version_needs_the_same_object_only() -> None:
    client = FakeClient()
    old = client.server.put(PODS, pod("a"))
    client.server.put(PODS, pod("a", labels={"changed": "meanwhile"}))
    action = Patch(PODS, old, {"metadata": {"annotations": {"addresses": "2"}}}, is_for_any_version=True)
    assert (await applier(client).apply(OWNER, [action])).failed == []
    assert client.server.objects(PODS)[0]["metadata"].get("annotations") == {"addresses": "2"}
    successor: Object = {**old, "metadata": {**old["metadata"], "uid": "another"}}
    failed = (await applier(client).apply(OWNER, [Patch(PODS, successor, action.body, is_for_any_version=True)])).failed
    assert [write.kind for write in failed] == ["Pod"]


@pytest.mark.parametrize("is_read_in_vain", [False, True])
async def test_T4_after_a_conflict_the_change_is_read_live_and_waited_for(*, is_read_in_vain: bool) -> None:
    client, store = FakeClient(), Store()
    carrying_out = applier(client, store)
    stored = client.server.put(PODS, pod("a"))
    store.replace([stored], resource_version_of(stored))
    changed = client.server.put_status(PODS, Key("default", "a"), {"phase": "Running"})
    if is_read_in_vain:
        client.refuse("get", PODS, "a", TransportError("lost"))
    with pytest.raises(StatusError) as caught:
        await carrying_out.perform(OWNER, Patch(PODS, stored, {"metadata": {"labels": {"x": "y"}}}))
    assert caught.value.is_conflict
    assert bool(carrying_out.consistency.wait_seconds(PI.key, PI.uid)) is not is_read_in_vain
    store.put(changed, resource_version_of(changed))
    assert carrying_out.consistency.wait_seconds(PI.key, PI.uid) == 0


async def test_of_many_creates_few_bodies_wait_in_memory() -> None:
    client, built, are_many = UnansweringClient(), list[str](), asyncio.Event()

    def building(name: str) -> Create:
        def build() -> Object:
            built.append(name)
            if len(built) == 127:  # batches of 1, 2, 4, … 64
                are_many.set()
            return pod(name)

        return Create(PODS, Key("default", name), build)

    applying = asyncio.create_task(applier(client).apply(OWNER, [building(f"p-{index}") for index in range(200)]))
    client.answers.set()
    await are_many.wait()
    client.answers.clear()
    await asyncio.sleep(1)
    assert len(built) <= 127 + AT_ONCE
    client.answers.set()
    assert (await applying).failed == []
    assert len(built) == 200
