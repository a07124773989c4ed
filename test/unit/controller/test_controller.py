"""The controller over real informers: events in, syncs out, nothing while it does not lead."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import structlog

from example_children import config_map, launcher, launcher_pod, worker
from fakes.world import KEY, WATCHED, World, mpijob
from mpiop.controller.apply import PredecessorError
from mpiop.controller.controller import STOP_GRACE_SECONDS, Controller, is_expected, job_of
from mpiop.controller.rest import MOST_SECONDS, SECONDS_A_WORKER, SHARE_IF_PRESSED, USUAL_SECONDS, Rest
from mpiop.informers.shared_informer import SharedInformer
from mpiop.informers.store import Notification
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, labels_of
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, SECRETS, Selection
from mpiop.leaderelection import LeaseLostError
from mpiop.metrics import Metrics
from mpiop.workqueue import WorkQueue
from mpiop.workqueue.lanes import FEW


@asynccontextmanager
async def live(world: World) -> AsyncIterator[Controller]:
    """Let informers feed the world's stores, and a controller that is yet to run."""
    controller = Controller(world.syncer.sync, WorkQueue[Key](), world.stores[MPIJOBS].keys, world.metrics, world.syncer.rest)
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []
        for resource in WATCHED:
            informer = SharedInformer(world.client, Selection(resource))
            informer.store = world.stores[resource]
            informer.add_handler(controller.handle)
            tasks.append(group.create_task(informer.run()))
            await informer.wait_for_sync()
        yield controller
        for task in tasks:
            task.cancel()


class Lookout:
    """A controller whose syncs only note which jobs were looked at, and when."""

    def __init__(self, *jobs: Key) -> None:
        self.names, self.times, self.rest = list[str](), list[float](), Rest()
        self.controller = Controller(self._look, WorkQueue[Key](), lambda: jobs, Metrics(version="test"), self.rest)

    async def _look(self, key: Key) -> None:
        self.names.append(key.name)
        self.times.append(asyncio.get_running_loop().time())

    async def names_after(self, obj: Object) -> list[str]:
        """Return which jobs the only worker looks at, in order, if there is news of `obj` before it has begun."""
        async with running(self.controller, workers=1, head_start_seconds=0):
            self.controller.handle(Notification(None, obj))
            await asyncio.sleep(1)
        return self.names


@asynccontextmanager
async def running(controller: Controller, workers: int = 2, head_start_seconds: float = 0.1) -> AsyncIterator[None]:
    task = asyncio.create_task(controller.run(workers))
    await asyncio.sleep(head_start_seconds)
    yield
    task.cancel()
    await asyncio.wait({task})


async def test_a_job_is_taken_from_its_creation_to_its_end_by_events_alone() -> None:
    world = World()
    async with live(world) as controller, running(controller):
        await world.submit(runPolicy={"cleanPodPolicy": "All"})
        await asyncio.sleep(3)
        world.start_workers()
        world.start_launcher()
        await asyncio.sleep(3)
        world.end_launcher()
        await asyncio.sleep(3)
        assert world.recorder.reasons == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
        assert world.names(PODS) == ["pi-launcher-x"]


async def test_events_of_a_large_job_are_answered_together_and_the_last_one_too() -> None:
    rest, key, looks = Rest(), Key("default", "pi"), list[float]()

    async def look(key: Key) -> None:
        looks.append(asyncio.get_running_loop().time())
        rest.begin(key, 1000, 0)

    controller = Controller(look, WorkQueue[Key](), list, Metrics(version="test"), rest)
    async with running(controller):
        for number in range(400):
            controller.handle(Notification(None, worker(number)))
            await asyncio.sleep(0.01)
        last = asyncio.get_running_loop().time()
        await asyncio.sleep(MOST_SECONDS)
    assert key == job_of(worker(0))
    assert 3 <= len(looks) <= 4  # about one each two seconds, in 4 seconds
    assert looks[-1] >= last - 0.01


def edited(raw: Object, **metadata: Any) -> Object:
    return cast("Object", {**raw, "metadata": {**raw["metadata"], **metadata}})


def with_status(**status: Any) -> Object:
    return cast("Object", {**mpijob(), "status": status})


@pytest.mark.parametrize("obj", [worker(0), mpijob(), launcher()], ids=lambda obj: obj["kind"])
async def test_a_change_of_nothing_that_is_read_is_no_reason_to_look(obj: Object) -> None:
    lookout = Lookout()
    async with running(lookout.controller):
        lookout.controller.handle(Notification(obj, edited(obj, resourceVersion="7")))
        await asyncio.sleep(MOST_SECONDS)
        assert lookout.names == []
        lookout.controller.handle(Notification(obj, edited(obj, labels=labels_of(obj) | {"new": "label"})))
        await asyncio.sleep(MOST_SECONDS)
        assert len(lookout.names) == 1


@pytest.mark.parametrize(
    ("notification", "is_early"),
    [
        pytest.param(Notification(worker(0, "Pending"), worker(0, "Running")), False, id="a worker runs, and another is missed"),
        pytest.param(Notification(worker(0), None), False, id="a worker is gone"),
        pytest.param(Notification(worker(0), worker(0, "Failed")), False, id="a worker has failed, which ends nothing"),
        pytest.param(Notification(worker(0), worker(0, "Failed", reason="Evicted")), True, id="a worker is evicted, which ends the job"),
        pytest.param(Notification(None, config_map()), False, id="what we made"),
        pytest.param(Notification(launcher_pod(), launcher_pod("Failed")), True, id="the launcher's pod has failed"),
        pytest.param(Notification(None, launcher_pod("Pending")), True, id="the launcher's pod is there"),
        pytest.param(Notification(launcher_pod(), edited(launcher_pod(), annotations={"a": "b"})), False, id="the launcher's pod is told"),
        pytest.param(Notification(None, launcher()), False, id="the launcher's Job, which we made"),
        pytest.param(Notification(launcher(), launcher(outcome={"type": "Complete"})), True, id="the launcher's Job is done"),
        pytest.param(Notification(mpijob(), edited(mpijob(), generation=2)), True, id="the user changes the job"),
        pytest.param(Notification(mpijob(), with_status(startTime="2026-01-01T00:00:00Z")), False, id="we wrote its status"),
        pytest.param(Notification(mpijob(), with_status(completionTime="2026-01-01T00:00:00Z")), True, id="it has ended"),
        pytest.param(Notification(mpijob(), edited(mpijob(), uid="other")), True, id="it is another job of that name"),
    ],
)
async def test_the_user_s_word_and_the_launcher_s_end_the_rest_of_a_large_job_early(notification: Notification, is_early: bool) -> None:  # noqa: FBT001 - a column of the table
    lookout = Lookout()
    async with running(lookout.controller):
        lookout.rest.begin(KEY, 1000, 2)
        begun = asyncio.get_running_loop().time()
        lookout.controller.handle(notification)
        await asyncio.sleep(MOST_SECONDS)
    (seconds,) = (look - begun for look in lookout.times)
    share = SHARE_IF_PRESSED if is_early else 1
    assert seconds == pytest.approx((USUAL_SECONDS + 1000 * SECONDS_A_WORKER) * share, abs=0.01)


async def test_the_last_worker_to_become_ready_ends_the_rest_early() -> None:
    lookout = Lookout()
    handle = lookout.controller.handle
    async with running(lookout.controller):
        lookout.rest.begin(KEY, 2, 2)
        begun = asyncio.get_running_loop().time()
        handle(Notification(worker(0, "Pending"), worker(0)))
        handle(Notification(worker(0), edited(worker(0), annotations={"new": "annotation"})))
        await asyncio.sleep(USUAL_SECONDS / 2)
        assert lookout.times == [], "another is missed"
        handle(Notification(None, worker(1)))
        await asyncio.sleep(MOST_SECONDS)
    assert [look - begun for look in lookout.times] == [pytest.approx(USUAL_SECONDS / 2, abs=0.01)]


async def test_what_comes_after_a_look_that_came_too_early_is_pressing() -> None:
    lookout = Lookout(Key("default", "a"), Key("default", "b"))
    lookout.rest.miss(KEY)
    assert await lookout.names_after(worker(0)) == ["pi", "a", "b"]


@pytest.mark.parametrize(
    ("obj", "others", "place"),
    [
        pytest.param(launcher_pod("Running"), FEW, 0, id="what the launcher does goes before jobs that have not begun"),
        pytest.param(worker(0), 2, 2, id="what a worker does goes after a few of them"),
        pytest.param(worker(0), FEW + 1, 0, id="what a worker does goes before many of them"),
    ],
)
async def test_news_and_jobs_that_have_not_begun_have_an_order(obj: Object, others: int, place: int) -> None:
    seen = await Lookout(*(Key("default", str(number)) for number in range(others))).names_after(obj)
    assert len(seen) == others + 1
    assert seen.index("pi") == place


@pytest.mark.parametrize(
    ("status", "order"),
    [
        pytest.param({}, ["a", "b", "pi"], id="not begun"),
        pytest.param({"conditions": [{"type": "Created", "status": "True"}]}, ["pi", "a", "b"], id="begun"),
        pytest.param(
            {"conditions": [{"type": "Succeeded", "status": "True"}], "completionTime": "2026-01-01T00:00:00Z"},
            ["a", "b", "pi"],
            id="ended",
        ),
    ],
)
async def test_an_mpijob_that_has_begun_goes_before_those_that_have_not_until_it_has_ended(
    status: dict[str, Any], order: list[str]
) -> None:
    lookout = Lookout(Key("default", "a"), Key("default", "b"))
    assert await lookout.names_after(cast("Object", mpijob() | {"status": status})) == order


@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_look_that_a_job_asked_for_comes_before_many_others_unless_it_has_ended(*, has_ended: bool) -> None:
    rest, seen, others = Rest(), list[str](), [Key("default", str(number)) for number in range(2 * FEW)]

    async def look(key: Key) -> float | None:
        seen.append(key.name)
        rest.begin(key, 0, 0, has_ended=has_ended)
        await asyncio.sleep(0.1)
        return 1.0 if seen == ["pi"] else None

    controller = Controller(look, WorkQueue[Key](), lambda: [KEY, *others], Metrics(version="test"), rest)
    async with running(controller, workers=1):
        await asyncio.sleep(len(others))
    assert seen.count("pi") == 2
    assert seen.index("pi", 1) == (len(others) + 1 if has_ended else 11)


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


async def test_a_stop_lets_the_sync_under_way_end_and_begins_no_other() -> None:
    started, ended = asyncio.Event(), list[str]()

    async def slow(key: Key) -> None:
        started.set()
        await asyncio.sleep(STOP_GRACE_SECONDS / 2)
        ended.append(key.name)

    controller = Controller(slow, WorkQueue[Key](), lambda: [Key("default", name) for name in "abc"], Metrics(version="test"), Rest())
    task = asyncio.create_task(controller.run(1))
    await started.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert ended == ["a"]


async def test_a_stop_does_not_wait_for_a_sync_that_hangs() -> None:
    async def hang(_key: Key) -> None:
        await asyncio.sleep(3600)

    controller = Controller(hang, WorkQueue[Key](), lambda: [Key("default", "a")], Metrics(version="test"), Rest())
    task = asyncio.create_task(controller.run(1))
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

    controller = Controller(
        sync, WorkQueue[Key](), lambda: [Key("default", "poison"), Key("default", "pi")], Metrics(version="test"), Rest()
    )
    with structlog.testing.capture_logs() as logs:
        async with running(controller, workers=1):
            await asyncio.sleep(1)
    assert done == ["pi"]
    assert {entry["event"] for entry in logs if entry["log_level"] == "error"} == {"sync failed"}


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

    queue = WorkQueue[Key]()
    controller = Controller(sync, queue, lambda: [Key("default", "a")], Metrics(version="test"), Rest())
    controller._failed = _broken  # type: ignore[method-assign]  # a worker ends only by a defect of the machinery itself
    with pytest.raises(ZeroDivisionError):
        await controller.run(2)
    assert queue.is_shut_down


def _broken(_key: Key, _error: Exception) -> None:
    raise ZeroDivisionError


def test_only_the_worlds_failures_are_expected() -> None:
    assert is_expected(PredecessorError(PODS, Key("default", "pi-worker-0")))
    lost, refused = TransportError("lost"), StatusError("get", {"code": 500})
    assert is_expected(ExceptionGroup("sync", [lost, refused]))
    assert is_expected(ExceptionGroup("sync", [lost, LeaseLostError("the renew deadline has passed")]))
    assert not is_expected(ExceptionGroup("sync", [lost, KeyError("x")]))
