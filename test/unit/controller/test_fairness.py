"""A job with very much to write, or a namespace whose writes are slow, does not keep others waiting."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fakes.api_server import FakeApiServer, FakeClient
from fakes.following import background
from fakes.world import KEY, World, mpijob
from mpiop.kube.objects import Key
from mpiop.kube.request import Request
from mpiop.kube.resources import MPIJOBS, PODS
from mpiop.kube.throttle import Throttle
from mpiop.kube.transport import DEFAULTS
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock


class BusyServer(FakeApiServer):
    """Takes so many requests at a time, and some seconds for each."""

    def __init__(self, places: int, seconds: Callable[[Request], float]) -> None:
        super().__init__()
        self.throttle, self.seconds = Throttle(places), seconds

    async def call(self, request: Request) -> dict[str, Any]:
        async with self.throttle.turn(request.key.namespace, request.flow):
            await asyncio.sleep(self.seconds(request))
            return await super().call(request)


async def test_a_suspend_of_a_thousand_workers_does_not_keep_a_small_job_waiting() -> None:
    world = World(client=FakeClient(server=BusyServer(4, lambda _request: 0.01)))
    await world.submit(workers=1000)
    await world.sync()
    await world.edit({"spec": {"runPolicy": {"suspend": True}}})
    await world.client.create(MPIJOBS, mpijob("small", workers=1))
    world.client.actions.clear()
    world.refresh()
    suspending = asyncio.create_task(world.syncer.sync(KEY))
    await asyncio.sleep(0.05)
    await world.syncer.sync(Key("default", "small"))
    writes = list(world.writes)
    assert any(write.endswith("small-worker-0") for write in writes)
    assert sum("pi-worker-" in write for write in writes) < 100
    await suspending
    assert sum("pi-worker-" in write for write in world.writes) == 1000


def slow_webhook(request: Request) -> float:
    return 8 if request.verb == "create" and request.key.namespace == "slow" and request.resource is not MPIJOBS else 0


@pytest.mark.parametrize("workers", [1, 100], ids=["all workers of the queue", "all requests"])
async def test_forty_jobs_behind_a_slow_webhook_delay_no_job_of_another_namespace(workers: int) -> None:
    client = FakeClient(server=BusyServer(DEFAULTS.most_in_flight, slow_webhook))
    operator = Operator(Options(health_port=0), client, Metrics(version="test"), VirtualClock())
    async with background(asyncio.create_task(operator.run())):
        await asyncio.sleep(5)
        for number in range(40):
            job = mpijob(f"slow-{number}", workers=workers)
            await client.create(MPIJOBS, {**job, "metadata": {**job["metadata"], "namespace": "slow"}})
        await asyncio.sleep(30)
        await client.create(MPIJOBS, mpijob("quick", workers=2))
        await asyncio.sleep(2)
        quick = [pod["metadata"].get("name") for pod in client.server.objects(PODS) if pod["metadata"].get("namespace") == "default"]
        slow = [pod for pod in client.server.objects(PODS) if pod["metadata"].get("namespace") == "slow"]
    assert quick == ["quick-worker-0", "quick-worker-1"]
    assert 0 < len(slow) < 40 * workers, "the webhook keeps the operator busy all the time"
