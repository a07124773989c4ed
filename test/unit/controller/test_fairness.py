"""One job with very much to write does not keep another one waiting."""

import asyncio
from typing import Any

from fakes.api_server import FakeApiServer, FakeClient
from fakes.world import KEY, World, mpijob
from mpiop.kube.client import Client
from mpiop.kube.objects import Key
from mpiop.kube.request import Request
from mpiop.kube.resources import MPIJOBS
from mpiop.kube.throttle import Throttle

PLACES = 4


class NarrowServer(FakeApiServer):
    """Takes a hundredth of a second for each request, and `PLACES` at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.throttle = Throttle(PLACES)

    async def call(self, request: Request) -> dict[str, Any]:
        async with self.throttle.turn(request.flow):
            await asyncio.sleep(0.01)
            return await super().call(request)


class NarrowClient(FakeClient):
    """The fake client over such a server."""

    def __init__(self) -> None:
        self.server = NarrowServer()
        Client.__init__(self, self.server)


async def test_a_suspend_of_a_thousand_workers_does_not_keep_a_small_job_waiting() -> None:
    world = World(client=NarrowClient())
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
