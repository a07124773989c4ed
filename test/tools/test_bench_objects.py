"""The floor of `make bench`, next to the operator: both make the same objects."""

from bench.objects import children
from fakes.world import World


async def test_the_floor_makes_all_that_the_operator_makes_of_a_job_that_runs() -> None:
    world = World()
    made = {(child.resource.kind, child.body["metadata"].get("name")) for child in children(await world.submit(workers=3))}

    await world.sync_until_idle()
    await world.run_job()

    assert made == {(action.resource.kind, action.key.name) for action in world.client.actions if action.verb == "create"}
