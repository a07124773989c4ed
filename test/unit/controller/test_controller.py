"""The controller over real informers: events in, syncs out, nothing while it does not lead."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import structlog

from example_children import config_map, launcher, launcher_pod, worker
from fakes.following import background
from fakes.world import KEY, WATCHED, World, mpijob
from fakes.writes import KUBELET
from mpiop.api import constants as c
from mpiop.controller.batches import FIRST_SECONDS, MOST_SECONDS, Batches
from mpiop.controller.controller import STOP_GRACE_SECONDS, Controller, is_expected, job_of
from mpiop.controller.errors import PredecessorError, ResourceExistsError
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.consistency import Consistency
from mpiop.controller.observe.projections import PROJECTIONS, trimmed
from mpiop.informers.shared_informer import SharedInformer
from mpiop.informers.store import Notification, Store
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, labels_of
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, MPIJOBS, PODS, SECRETS, Resource, Selection
from mpiop.leaderelection import LeaseLostError
from mpiop.metrics import Metrics
from mpiop.workqueue import ShutDown, WorkQueue
from virtual_time import VirtualClock


@asynccontextmanager
async def live(world: World) -> AsyncIterator[Controller]:
    """Let informers feed the world's stores, and a controller that is yet to run."""
    controller = Controller(world.syncer.sync, WorkQueue[Key](), world.stores[MPIJOBS].keys, world.metrics, world.batches)
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []
        for resource in WATCHED:
            selection = Selection(resource, projection=PROJECTIONS[resource], trim=world.trims.get(resource, trimmed))
            informer = SharedInformer(world.client, selection)
            informer.store = world.stores[resource]
            informer.add_handler(controller.handle)
            tasks.append(group.create_task(informer.run()))
            await informer.wait_for_sync()
        yield controller
        for task in tasks:
            task.cancel()


def controlling(sync: Callable[[Key], Awaitable[None]], *names: str) -> Controller:
    """Return a controller of jobs with these names, none of which waits for workers."""
    memory, keys = JobMemory(), [Key("default", name) for name in names]
    batches = Batches(memory, Consistency({}, VirtualClock(), memory))
    return Controller(sync, WorkQueue[Key](), lambda: keys, Metrics(version="test"), batches)


class Noting:
    """A controller whose syncs note when they were, and how many workers they still wait for."""

    def __init__(self) -> None:
        self.times, self._begun, self._at_sync, memory = list[float](), 0.0, lambda: None, JobMemory()
        self.consistency = Consistency({resource: Store({}) for resource in WATCHED}, VirtualClock(), memory)
        self.batches = Batches(memory, self.consistency)
        self.controller = Controller(self._sync, WorkQueue[Key](), list, Metrics(version="test"), self.batches)

    def begin(self, awaited: int, *, desired: int, pending: int | None = None, are_leaving: bool = False) -> None:
        """Begin a sync that waits for so many of the desired workers, and let those to come do the same; count seconds from now."""
        self._begun = asyncio.get_running_loop().time()
        not_running = awaited if pending is None else pending
        self._at_sync = lambda: self.batches.begin(KEY, awaited, pending=not_running, desired=desired, are_leaving=are_leaving)
        self._at_sync()

    async def _sync(self, key: Key) -> None:
        assert key == KEY
        self.times.append(asyncio.get_running_loop().time() - self._begun)
        self._at_sync()


@asynccontextmanager
async def running(controller: Controller, workers: int = 2) -> AsyncIterator[None]:
    async with background(asyncio.create_task(controller.run(workers))):
        await asyncio.sleep(0.1)
        yield


@pytest.fixture
async def noting() -> AsyncIterator[Noting]:
    noting = Noting()
    async with running(noting.controller):
        yield noting


@pytest.mark.parametrize(("workers", "requests"), [(8, 29), (4, 21)])
async def test_a_job_that_starts_normally_costs_no_request_that_nobody_needs(workers: int, requests: int) -> None:
    world = World()
    async with live(world) as controller, running(controller):
        await world.submit(workers=workers, runPolicy={"cleanPodPolicy": "All"})
        await asyncio.sleep(0.5)
        world.start_launcher("Pending")
        for number in range(workers):
            world.pod_status(f"pi-worker-{number}", "Running", ready=True)
            if number == workers // 2:
                world.pod_status("pi-launcher-x", "Running")
            await asyncio.sleep(0.05)
        await asyncio.sleep(3)
        world.pod_status("pi-launcher-x", "Succeeded")
        await asyncio.sleep(1.1)  # the Job controller waits for a second
        world.end_launcher()
        await asyncio.sleep(20)
        assert world.names(PODS) == ["pi-launcher-x"]
    assert Counter(write.rpartition(" ")[0] for write in world.writes) == {
        "create Secret": 1,
        "create Service": 1,
        "create ConfigMap": 1,
        "create Pod": workers,
        "create Job": 1,
        "patch MPIJob/status": 3,
        "patch ConfigMap": 1,
        "patch Pod": 2,
        "delete Pod": workers,
    }
    assert world.recorder.reasons == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
    assert len(world.writes) + len(world.recorder.reasons) == requests
    assert not [request for request in world.client.server.requests if request.verb == "list" and request.resource == EVENTS]


async def test_workers_that_start_are_handled_in_batches_that_grow(noting: Noting) -> None:
    noting.begin(1000, desired=1000)
    for number in range(380):
        noting.controller.handle(Notification(worker(number, "Pending"), worker(number)))
        await asyncio.sleep(0.1)
    # Each sync begins the next batch with the worker that comes after it.
    assert noting.times == [pytest.approx(seconds, abs=0.5) for seconds in (1, 3, 7, 15, 25, 35)]


def edited(raw: Object, **metadata: Any) -> Object:
    return cast("Object", {**raw, "metadata": {**raw["metadata"], **metadata}})


CONDITION = {"type": "Running", "status": "True"}


@pytest.mark.parametrize(
    ("old", "new", "resource", "seconds"),
    [
        pytest.param(mpijob(), {"status": {"replicaStatuses": {}}}, MPIJOBS, MOST_SECONDS, id="counts"),
        pytest.param(mpijob(), {"status": {"conditions": [CONDITION]}}, MPIJOBS, FIRST_SECONDS, id="a condition"),
        pytest.param(mpijob(), {"status": {"completionTime": "2026-01-01T00:00:00Z"}}, MPIJOBS, 0, id="the end"),
        pytest.param(config_map(), {"data": {"discover_hosts.sh": "#!/bin/sh"}}, CONFIG_MAPS, MOST_SECONDS, id="the list of hosts"),
        pytest.param(config_map(), edited(config_map(), labels={"app": "stamped"}), CONFIG_MAPS, 0, id="a label, by admission"),
        pytest.param(None, config_map(), CONFIG_MAPS, 0, id="a new list of hosts"),
        pytest.param(launcher_pod(), {"status": {"podIP": "10.0.0.9"}}, PODS, FIRST_SECONDS, id="the launcher's address"),
    ],
)
@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_count_or_list_of_hosts_that_we_wrote_ourselves_is_looked_at_later(
    noting: Noting, old: Object | None, new: dict[str, Any], resource: Resource, seconds: float, *, is_ours: bool
) -> None:
    written = edited({**(old or new), **new}, resourceVersion="8")
    noting.consistency.wrote(KEY, "uid", resource, edited(written, resourceVersion="8" if is_ours else "7"))
    noting.begin(2, desired=2)
    noting.controller.handle(Notification(old, written))
    await asyncio.sleep(2 * MOST_SECONDS)
    if seconds == MOST_SECONDS and not is_ours:
        seconds = FIRST_SECONDS if resource is MPIJOBS else 0
    assert noting.times == [pytest.approx(seconds)]


@pytest.mark.parametrize(("seconds", "statuses", "host_lists"), [(30, 12, 8), (600, 100, 70)])
async def test_a_slow_start_costs_few_writes_and_its_end_is_reported_at_once(seconds: int, statuses: int, host_lists: int) -> None:
    world = World()
    async with live(world) as controller, running(controller):
        await world.submit(workers=200)
        await asyncio.sleep(1)
        world.start_launcher()
        for number in range(200):
            world.pod_status(f"pi-worker-{number}", "Running", ready=True, podIP=f"10.0.1.{number}")
            await asyncio.sleep(seconds / 200)
            behind = number + 1 - world.status.replica_statuses["Worker"].active
            assert behind * seconds / 200 <= 10.5, "seconds"
        await asyncio.sleep(0.1)
        assert world.status.is_true(c.CONDITION_RUNNING)
    written = Counter(world.writes)
    assert written["patch MPIJob default/pi"] <= statuses
    assert written["patch ConfigMap default/pi-config"] <= host_lists


@pytest.mark.parametrize(
    ("awaited", "desired"), [pytest.param(0, 1000, id="all were Ready"), pytest.param(1000, 1001, id="the job was scaled")]
)
async def test_the_next_start_begins_with_a_short_batch(noting: Noting, awaited: int, desired: int) -> None:
    noting.begin(1000, desired=1000)
    for number in range(30):
        noting.controller.handle(Notification(worker(number, "Pending"), worker(number)))
        await asyncio.sleep(1)
    noting.begin(awaited, desired=desired)
    noting.begin(1000, desired=desired)
    await asyncio.sleep(20)
    noting.times.clear()
    noting.controller.handle(Notification(worker(7, "Pending"), worker(7)))
    await asyncio.sleep(20)
    assert noting.times == [pytest.approx(20 + FIRST_SECONDS)]


@pytest.mark.parametrize("obj", [worker(0), mpijob(), launcher()], ids=lambda obj: obj["kind"])
async def test_a_change_of_nothing_that_is_read_is_no_reason_to_sync(noting: Noting, obj: Object) -> None:
    noting.controller.handle(Notification(obj, edited(obj, resourceVersion="7")))
    await asyncio.sleep(1)
    assert noting.times == []
    noting.controller.handle(Notification(obj, edited(obj, labels=labels_of(obj) | {"new": "label"})))
    await asyncio.sleep(1)
    assert len(noting.times) == 1


async def test_any_event_of_a_job_whose_sync_was_put_off_may_be_the_one_waited_for(noting: Noting) -> None:
    noting.begin(1000, desired=1000)
    noting.batches.postpone(KEY)
    noting.controller.handle(Notification(worker(0), edited(worker(0), resourceVersion="7")))
    await asyncio.sleep(1)
    assert noting.times == [0]


TERMINATING = edited(worker(0), deletionTimestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("notification", "seconds"),
    [
        pytest.param(Notification(None, worker(0, "Pending")), FIRST_SECONDS, id="a worker is there"),
        pytest.param(Notification(worker(0, "Pending"), worker(0)), FIRST_SECONDS, id="a worker is Ready, and another is missed"),
        pytest.param(Notification(worker(0), None), 0, id="a worker is gone"),
        pytest.param(Notification(worker(0), TERMINATING), 0, id="a worker is being deleted"),
        pytest.param(Notification(TERMINATING, edited(TERMINATING, annotations={"a": "b"})), FIRST_SECONDS, id="it still is"),
        pytest.param(Notification(worker(0), worker(0, "Failed")), 0, id="a worker has failed"),
        pytest.param(Notification(worker(0, "Failed"), None), 0, id="a worker that had failed is gone"),
        pytest.param(Notification(worker(2), None), FIRST_SECONDS, id="a worker is gone that the job no longer has"),
        pytest.param(Notification(launcher_pod(), launcher_pod("Failed")), 0, id="the launcher's pod has failed"),
        pytest.param(Notification(None, launcher_pod("Pending")), FIRST_SECONDS, id="the launcher's pod is there"),
        pytest.param(Notification(launcher_pod("Pending"), launcher_pod()), FIRST_SECONDS, id="the launcher runs"),
        pytest.param(
            Notification(launcher_pod("Pending"), launcher_pod("Pending", conditions=[{"type": "PodScheduled", "status": "False"}])),
            0,
            id="no node takes the launcher",
        ),
        pytest.param(Notification(launcher_pod(), edited(launcher_pod(), annotations={"a": "b"})), 0, id="somebody edits it"),
        pytest.param(
            Notification(launcher_pod(), launcher_pod("Succeeded")), MOST_SECONDS, id="the launcher's pod has succeeded, its Job not yet"
        ),
        pytest.param(Notification(None, launcher()), FIRST_SECONDS, id="the launcher's Job is there"),
        pytest.param(Notification(launcher(), launcher(active=1)), FIRST_SECONDS, id="the launcher's Job has a Pod"),
        pytest.param(Notification(launcher(suspend=True), launcher()), 0, id="the launcher's Job is resumed"),
        pytest.param(Notification(launcher(), launcher(failed=1)), 0, id="a Pod of the launcher's Job has failed"),
        pytest.param(Notification(launcher(), launcher(outcome={"type": "SuccessCriteriaMet"})), MOST_SECONDS, id="its Job is almost done"),
        pytest.param(Notification(launcher(), launcher(outcome={"type": "Complete"})), 0, id="the launcher's Job is done"),
        pytest.param(Notification(mpijob(), edited(mpijob(), generation=2)), 0, id="the user changes the job"),
        pytest.param(Notification(mpijob(), edited(mpijob(), annotations={"a": "b"})), 0, id="and its annotations"),
        pytest.param(Notification(mpijob(), edited(mpijob(), uid="other")), 0, id="it is another job of that name"),
    ],
)
async def test_how_soon_a_job_is_synced(noting: Noting, notification: Notification, seconds: float) -> None:
    noting.begin(2, desired=2)
    noting.controller.handle(notification)
    await asyncio.sleep(MOST_SECONDS + 1)
    assert noting.times == [pytest.approx(seconds)]


@pytest.mark.parametrize(
    "notification",
    [
        Notification(None, launcher()),
        Notification(None, launcher_pod("Pending")),
        Notification(launcher_pod("Pending"), launcher_pod()),
    ],
)
@pytest.mark.parametrize(("pending", "are_leaving"), [(0, False), (2, True)], ids=["all workers run", "they leave"])
async def test_the_start_of_a_launcher_that_waits_for_no_worker_is_acted_on_at_once(
    noting: Noting, notification: Notification, pending: int, *, are_leaving: bool
) -> None:
    noting.begin(2, desired=2, pending=pending, are_leaving=are_leaving)
    noting.controller.handle(notification)
    await asyncio.sleep(1)
    assert noting.times == [0]


@pytest.mark.parametrize("is_launcher_last", [True, False])
async def test_a_job_is_running_at_once_though_its_workers_are_not_ready(*, is_launcher_last: bool) -> None:
    world = World()
    async with live(world) as controller, running(controller):
        await world.submit()
        await asyncio.sleep(5)
        starts = [lambda: world.pod_status("pi-worker-0", "Running", ready=False), lambda: world.pod_status("pi-worker-1", "Running")]
        starts.insert(len(starts) if is_launcher_last else 0, world.start_launcher)
        for start in starts:
            assert not world.status.is_true(c.CONDITION_RUNNING)
            start()
            await asyncio.sleep(AT_ONCE_SECONDS)
        assert world.status.is_true(c.CONDITION_RUNNING)
        assert world.status.summary.workers == "2/2"


@pytest.mark.parametrize(
    ("before", "after", "are_leaving"),
    [
        pytest.param(worker(0, "Pending"), worker(0), False, id="Ready"),
        pytest.param(worker(0, "Pending"), None, True, id="gone"),
        pytest.param(TERMINATING, edited(worker(0, "Failed"), deletionTimestamp="2026-01-01T00:00:00Z"), True, id="ended"),
    ],
)
async def test_the_last_worker_that_is_awaited_does_not_wait(
    noting: Noting, before: Object, after: Object | None, *, are_leaving: bool
) -> None:
    noting.begin(2, desired=2, are_leaving=are_leaving)
    noting.controller.handle(Notification(before, after))
    await asyncio.sleep(FIRST_SECONDS / 2)
    assert noting.times == [], "another is missed"
    noting.controller.handle(Notification(before, after))
    await asyncio.sleep(1)
    assert noting.times == [pytest.approx(FIRST_SECONDS / 2)]


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(worker(0), TERMINATING, id="still running"), pytest.param(worker(0, "Failed"), None, id="gone after they had ended")],
)
async def test_workers_that_leave_are_batched(noting: Noting, before: Object, after: Object | None) -> None:
    noting.begin(5, desired=5, are_leaving=True)
    for _ in range(10):
        noting.controller.handle(Notification(before, after))
    await asyncio.sleep(1)
    assert noting.times == [pytest.approx(FIRST_SECONDS)]


AT_ONCE_SECONDS = 0.01


async def test_the_status_follows_the_last_worker_that_is_awaited_at_once() -> None:
    world = World()
    async with live(world) as controller, running(controller):
        await world.submit()
        await asyncio.sleep(1)
        for pod in world.client.server.objects(PODS):
            world.client.server.put(PODS, edited(pod, finalizers=[KUBELET]))
        await asyncio.sleep(1)

        world.pod_status("pi-worker-0", "Running", ready=True)
        await asyncio.sleep(AT_ONCE_SECONDS)
        assert world.status.summary.workers == "0/2"
        await asyncio.sleep(1)
        world.pod_status("pi-worker-1", "Running", ready=True)
        await asyncio.sleep(AT_ONCE_SECONDS)
        assert world.status.summary.workers == "2/2"

        await world.edit({"spec": {"runPolicy": {"suspend": True}}})
        await asyncio.sleep(1)
        world.pod_status("pi-worker-0", "Failed")
        await asyncio.sleep(AT_ONCE_SECONDS)
        assert world.status.replica_statuses["Worker"].active == 2
        await asyncio.sleep(1)
        world.pod_status("pi-worker-1", "Failed")
        await asyncio.sleep(AT_ONCE_SECONDS)
        assert world.status.replica_statuses["Worker"].active == 0


async def test_a_replica_that_stands_by_writes_nothing_and_queues_nothing_and_then_takes_over() -> None:
    world = World()
    async with live(world) as controller:
        await world.submit()
        await asyncio.sleep(1)
        assert world.writes == []
        assert len(controller._queue) == 0
        async with running(controller):
            await asyncio.sleep(1)
            assert world.names(JOBS) == ["pi-launcher"]


async def test_a_failing_sync_is_repeated_and_does_not_hold_up_others() -> None:
    world = World()
    world.client.refuse("create", SECRETS, "pi-ssh", TransportError("lost"), times=5)
    async with live(world) as controller, running(controller, workers=1):
        await world.submit()
        await world.submit(name="other")
        await asyncio.sleep(10)
        assert sorted(world.names(JOBS)) == ["other-launcher", "pi-launcher"]
        assert world.metrics.registry.get_sample_value("mpiop_sync_errors_total") == 5


async def test_a_refused_status_is_a_warning_for_no_condition_can_tell_it() -> None:
    world = World()
    refused = StatusError("patch mpijobs/status", {"code": 403, "reason": "Forbidden", "message": "no right"})
    world.client.refuse("patch", MPIJOBS, "pi", refused, times=2)
    with structlog.testing.capture_logs() as logs:
        async with live(world) as controller, running(controller):
            await world.submit()
            await asyncio.sleep(10)
            assert world.status.is_true(c.CONDITION_CREATED)
    warned = [entry for entry in logs if entry["log_level"] == "warning"]
    assert [entry["event"] for entry in warned] == ["the operator lacks a right, will retry"] * 2
    assert warned[0]["job"] == "default/pi"
    assert "no right" in warned[0]["error"]


async def test_a_stop_lets_the_sync_under_way_end_and_begins_no_other() -> None:
    started, ended = asyncio.Event(), list[str]()

    async def slow(key: Key) -> None:
        started.set()
        await asyncio.sleep(STOP_GRACE_SECONDS / 2)
        ended.append(key.name)

    task = asyncio.create_task(controlling(slow, "a", "b", "c").run(1))
    await started.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert ended == ["a"]


async def test_a_stop_does_not_wait_for_a_sync_that_hangs() -> None:
    async def hang(_key: Key) -> None:
        await asyncio.sleep(3600)

    task = asyncio.create_task(controlling(hang, "a").run(1))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task}, timeout=STOP_GRACE_SECONDS * 1.5)
    assert task.cancelled()


async def test_a_defect_in_a_sync_costs_only_that_job_and_is_logged_with_its_place() -> None:
    done: list[str] = []

    async def sync(key: Key) -> None:
        if key.name == "poison":
            raise KeyError("a defect")
        done.append(key.name)

    with structlog.testing.capture_logs() as logs:
        async with running(controlling(sync, "poison", "pi"), workers=1):
            await asyncio.sleep(1)
    assert done == ["pi"]
    assert {entry["event"] for entry in logs if entry["log_level"] == "error"} == {"sync failed unexpectedly"}


@pytest.mark.parametrize(
    ("obj", "key"),
    [
        (mpijob(), KEY),
        (launcher_pod(), KEY),
        (worker(0), KEY),
        ({"kind": "Pod", "metadata": {"name": "x", "namespace": "default"}}, None),
    ],
    ids=["the job itself", "a pod of its launcher, by label", "a child, by its controller", "a stranger"],
)
def test_the_job_that_an_object_concerns(obj: Object, key: Key | None) -> None:
    assert job_of(obj) == key


async def test_a_worker_that_dies_takes_the_controller_with_it() -> None:
    async def sync(_key: Key) -> None:
        raise asyncio.InvalidStateError

    controller = controlling(sync, "a")
    controller._failed = _broken  # type: ignore[method-assign]  # a worker ends only by a defect of the machinery itself
    with pytest.raises(ZeroDivisionError):
        await controller.run(2)
    with pytest.raises(ShutDown):  # nothing waits for a key any more, and nothing is added
        await controller._queue.get()


def _broken(_key: Key, _error: Exception) -> None:
    raise ZeroDivisionError


def test_only_the_worlds_failures_are_expected() -> None:
    assert is_expected(PredecessorError(PODS, Key("default", "pi-worker-0")))
    assert is_expected(ExceptionGroup("sync", [ResourceExistsError("Pod", "pi-worker-0")]))
    lost, refused = TransportError("lost"), StatusError("get", {"code": 500})
    assert is_expected(ExceptionGroup("sync", [lost, refused]))
    assert is_expected(ExceptionGroup("sync", [lost, LeaseLostError("the renew deadline has passed")]))
    assert not is_expected(ExceptionGroup("sync", [lost, KeyError("x")]))
