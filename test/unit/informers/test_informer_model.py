"""Store and informer against a model: a dict, and a server whose history is changed, cut and forgotten at random."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fakes.api_server import FakeClient
from fakes.following import LISTS, STREAMS
from fakes.scripted_server import pod
from mpiop.informers import InformerSettings, Notification, SharedInformer, Store
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, key_of, labels_of, resource_version_of, uid_of
from mpiop.kube.resources import PODS, Selection
from virtual_time import VirtualClock, VirtualTimeLoop, run_ready_tasks

NAMES = st.sampled_from("abcd")
ROLES = st.sampled_from(["", "x", "y", "x.y"])


def by_role(obj: Object) -> list[str]:
    role = labels_of(obj).get("role", "")
    return role.split(".") if role else []


@dataclass(frozen=True)
class Put:
    name: str
    role: str
    uid: str


@dataclass(frozen=True)
class Remove:
    name: str


@dataclass(frozen=True)
class Swap:
    names: frozenset[str]
    role: str


STEPS = st.one_of(
    st.builds(Put, NAMES, ROLES, st.sampled_from(["1", "2"])),
    st.builds(Remove, NAMES),
    st.builds(Swap, st.frozensets(NAMES), ROLES),
)


@given(st.lists(STEPS, max_size=40))
def test_I24_I28_the_store_and_its_index_equal_a_dict_and_notifications_rebuild_it(steps: list[Put | Remove | Swap]) -> None:
    store = Store({"role": by_role})
    model: dict[Key, Object] = {}
    rebuilt: dict[Key, Object] = {}
    for version, step in enumerate(steps, start=1):
        reported: list[Notification | None]
        if isinstance(step, Put):
            obj = pod(step.name, version, uid=step.uid, labels={"role": step.role})
            model[key_of(obj)] = obj
            reported = [store.put(obj, str(version))]
        elif isinstance(step, Remove):
            model.pop(Key("ns", step.name), None)
            reported = [store.remove(pod(step.name, version), str(version))]
        else:
            fresh = [pod(name, version, labels={"role": step.role}) for name in sorted(step.names)]
            model = {key_of(obj): obj for obj in fresh}
            reported = list(store.replace(fresh, str(version)))
        for notification in filter(None, reported):
            assert (notification.key in rebuilt) == (notification.old is not None)
            rebuilt.pop(notification.key, None)
            if notification.new is not None:
                rebuilt[notification.key] = notification.new
        assert {key: store.get(key) for key in store.keys()} == model == rebuilt  # noqa: SIM118 - a store is not a mapping
        assert store.resource_version == str(version)
        for role in ("x", "y"):
            expected = {key for key, obj in model.items() if role in by_role(obj)}
            assert {key_of(obj) for obj in store.by_index("role", role)} == expected
        assert set(store._indexes["role"]) == {value for obj in model.values() for value in by_role(obj)}


class InformerMachine(RuleBasedStateMachine):
    """I26, I27, I32 and I39: whatever the server does, the store gets there, and each handler's events add up to it."""

    reflector = LISTS

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.client, self.informer, self.task = self.run(self.start())
        self.views: list[dict[Key, Object]] = []
        self.broken: list[str] = []
        self.add_handler()

    async def start(self) -> tuple[FakeClient, SharedInformer, asyncio.Task[Any]]:
        client = FakeClient(VirtualClock())
        informer = SharedInformer(client, Selection(PODS), indexers={"role": by_role}, settings=InformerSettings(self.reflector))
        return client, informer, asyncio.create_task(informer.run())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function that needs the running loop."""

        async def within() -> None:
            function(*args)

        self.run(within())

    def teardown(self) -> None:
        async def stop() -> None:
            self.client.server.allow()
            await asyncio.sleep(600)
            self.compare()
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

        try:
            self.run(stop())
        finally:
            self.runner.close()

    def compare(self) -> None:
        expected = {key_of(obj): resource_version_of(obj) for obj in self.client.server.objects(PODS)}
        assert {key_of(obj): resource_version_of(obj) for obj in self.informer.store.values()} == expected
        for view in self.views:
            assert {key: resource_version_of(obj) for key, obj in view.items()} == expected

    @rule()
    def add_handler(self) -> None:
        view: dict[Key, Object] = {}

        def handle(notification: Notification) -> None:
            known = view.pop(notification.key, None)
            if (known is None) != (notification.old is None):
                self.broken.append(f"notified of a change from {notification.old} where it knew {known}")
            if notification.new is not None:
                if (
                    known
                    and uid_of(known) == uid_of(notification.new)
                    and int(resource_version_of(known)) >= int(resource_version_of(notification.new))
                ):
                    self.broken.append(f"went back from {known} to {notification.new}")
                view[notification.key] = notification.new

        self.call(self.informer.add_handler, handle)
        self.views.append(view)

    @rule(name=NAMES, role=ROLES)
    def write(self, name: str, role: str) -> None:
        metadata = {"namespace": "ns", "name": name, "labels": {"role": role}}
        self.call(self.client.server.put, PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if any(key_of(obj) == Key("ns", name) for obj in self.client.server.objects(PODS)):
            self.call(self.client.server.remove, PODS, Key("ns", name))

    @rule()
    def cut(self) -> None:
        self.call(self.client.server.cut_streams)

    @rule()
    def compact(self) -> None:
        self.call(self.client.server.compact)

    @rule(verb=st.sampled_from(["list", "watch"]), code=st.sampled_from([0, 403, 410, 429, 500, 503]))
    def refuse(self, verb: str, code: int) -> None:
        error = StatusError(f"{verb} pods", {"code": code}) if code else TransportError(f"{verb} pods: connection refused")
        self.client.refuse(verb, PODS, "", error, times=1)

    @rule()
    def tasks_run(self) -> None:
        self.run(run_ready_tasks(20))

    @rule(seconds=st.sampled_from([0.1, 1.0, 30.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @invariant()
    def no_handler_was_misled(self) -> None:
        assert self.broken == []

    @invariant()
    def it_runs(self) -> None:
        assert not self.task.done()


class StreamingInformerMachine(InformerMachine):
    """The same with watch-lists."""

    reflector = STREAMS


STEP_SETTINGS = settings(max_examples=40, stateful_step_count=30, deadline=None)
InformerMachine.TestCase.settings = STEP_SETTINGS
StreamingInformerMachine.TestCase.settings = STEP_SETTINGS
TestI39InformerAgainstModel = InformerMachine.TestCase
TestI39StreamingInformerAgainstModel = StreamingInformerMachine.TestCase
