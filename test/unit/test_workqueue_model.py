"""The work queue against a model: three sets, a list and a limit, driven by random steps in virtual time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mpiop.shares import RESERVED
from mpiop.workqueue import ShutDown, WorkQueue
from virtual_time import VirtualTimeLoop, run_ready_tasks

KEYS = st.sampled_from(["a1", "a2", "a3", "b1", "b2", "c1", "d1", "e1", "f1", "g1"])
LIMIT = 2
ResultT = TypeVar("ResultT")


class QueueMachine(RuleBasedStateMachine):
    """Q40 to Q45: whatever is called in whatever order, the queue does what the model specifies."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.queue = WorkQueue[str](namespace_of=lambda key: key[0], limit=LIMIT)
        self.waiting: list[str] = []
        self.again: set[str] = set()
        self.working: set[str] = set()
        self.due: dict[str, float] = {}
        self.is_shut_down = False

    def teardown(self) -> None:
        self.runner.close()

    def run(self, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self.runner.run(coroutine)

    def now(self) -> float:
        return self.runner.get_loop().time()

    def expect_add(self, key: str) -> None:
        if not self.is_shut_down and key not in self.waiting:
            if key in self.working:
                self.again.add(key)
            else:
                self.waiting.append(key)

    def may_begin(self, key: str) -> bool:
        is_first = all(key[0] != other[0] for other in self.working)
        return len(self.working) < LIMIT + (RESERVED if is_first else 0)

    def ready(self) -> list[str]:
        return [key for key in self.waiting if self.may_begin(key)]

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        async def call() -> None:
            self.queue.add(key)

        self.run(call())
        self.expect_add(key)

    @rule(key=KEYS, delay=st.sampled_from([-1.0, 0.0, 1.0, 2.0, 5.0]))
    def add_after(self, key: str, delay: float) -> None:
        async def call() -> None:
            self.queue.add_after(key, delay)

        due = self.now() + delay
        self.run(call())
        if delay <= 0:
            self.expect_add(key)
        elif not self.is_shut_down:
            self.due[key] = min(self.due.get(key, due), due)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def time_passes(self, seconds: float) -> None:
        # In steps, so that keys due at different moments come in the order of these.
        async def call() -> None:
            await asyncio.sleep(0.5)
            await run_ready_tasks(3)

        for _ in range(int(seconds / 0.5)):
            self.run(call())
            for key in sorted((key for key, due in self.due.items() if due <= self.now()), key=lambda key: self.due[key]):
                del self.due[key]
                self.expect_add(key)

    @precondition(lambda self: bool(self.ready()))
    @rule()
    def get(self) -> None:
        key = self.run(self.queue.get())
        # Timers of the same moment may fire in either order: which came first is not promised.
        assert key in self.ready()
        self.waiting.remove(key)
        self.working.add(key)
        self.due.pop(key, None)

    @precondition(lambda self: not self.ready())
    @rule()
    def get_of_nothing(self) -> None:
        if self.is_shut_down and not self.waiting:
            with pytest.raises(ShutDown):
                self.run(self.queue.get())
            return

        async def call() -> bool:
            getter = asyncio.create_task(self.queue.get())
            await run_ready_tasks(3)
            getter.cancel()
            await asyncio.wait([getter])
            return getter.cancelled()

        assert self.run(call())

    @precondition(lambda self: bool(self.working))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))

        async def call() -> None:
            self.queue.done(key)

        self.run(call())
        self.working.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.waiting.append(key)

    @rule()
    def shut_down(self) -> None:
        async def call() -> None:
            self.queue.shut_down()

        self.run(call())
        self.is_shut_down = True
        self.due.clear()

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert len(self.queue) == len(self.waiting)
        assert {key for keys in self.queue._queued._waiting.values() for key in keys} == set(self.waiting)
        assert set(self.queue._dirty_since) == set(self.waiting) | self.again
        assert set(self.queue._processing_since) == self.working
        assert set(self.queue._timers) == set(self.due)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQ40Q41Q42Q43Q44Q45QueueAgainstModel = QueueMachine.TestCase
