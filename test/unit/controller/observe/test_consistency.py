"""Read your own writes (E55): no sync before every cache shows what was last written for the owner."""

from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.consistency import Consistency
from mpiop.informers.store import Store
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import JOBS, PODS, SECRETS
from virtual_time import VirtualClock

OWNER = Key("default", "pi")


def written(version: str) -> Object:
    return {"metadata": {"resourceVersion": version}}


def consistency() -> tuple[Consistency, Store, Store]:
    pods, jobs = Store(), Store()
    for store in (pods, jobs):
        store.advance("1")
    return Consistency({PODS: pods, JOBS: jobs}, VirtualClock(), JobMemory()), pods, jobs


async def test_E55_every_touched_cache_has_to_come_to_the_last_write() -> None:
    tracked, pods, jobs = consistency()
    tracked.wrote(OWNER, "1", PODS, written("9"))
    tracked.wrote(OWNER, "1", JOBS, written("10"))
    assert tracked.wait_seconds(OWNER, "1") > 0
    jobs.advance("10")
    assert tracked.wait_seconds(OWNER, "1") > 0
    pods.advance("11")
    assert tracked.wait_seconds(OWNER, "1") == 0


async def test_E55_of_simultaneous_writes_the_newest_counts_in_whatever_order_they_are_answered() -> None:
    tracked, pods, _ = consistency()
    tracked.wrote(OWNER, "1", PODS, written("10"))
    tracked.wrote(OWNER, "1", PODS, written("9"))
    pods.advance("9")
    assert tracked.wait_seconds(OWNER, "1") > 0


async def test_E55_another_owner_is_not_held_up() -> None:
    tracked = consistency()[0]
    tracked.wrote(OWNER, "1", PODS, written("9"))
    assert tracked.wait_seconds(Key("default", "other"), "2") == 0


async def test_E53_a_successor_of_the_same_name_inherits_nothing() -> None:
    tracked, pods, _ = consistency()
    tracked.wrote(OWNER, "old", PODS, written("9"))
    assert tracked.wait_seconds(OWNER, "new") == 0
    tracked.wrote(OWNER, "old", PODS, written("9"))
    tracked.wrote(OWNER, "new", PODS, written("8"))
    assert tracked.wait_seconds(OWNER, "new") > 0, "its own write is waited for"
    pods.advance("8")
    assert tracked.wait_seconds(OWNER, "new") == 0


async def test_E53_what_is_known_of_an_owner_dies_with_it() -> None:
    memory, pods = JobMemory(), Store()
    tracked = Consistency({PODS: pods}, VirtualClock(), memory)
    pods.advance("1")
    tracked.wrote(OWNER, "1", PODS, written("9"))
    memory.forget(OWNER)
    assert tracked.wait_seconds(OWNER, "1") == 0


async def test_E55_versions_that_cannot_be_compared_and_kinds_without_a_cache_are_not_waited_for() -> None:
    tracked, pods, _ = consistency()
    pods.advance("abc")
    tracked.wrote(OWNER, "1", PODS, written("9"))
    tracked.wrote(OWNER, "1", SECRETS, written("9"))
    tracked.wrote(OWNER, "1", JOBS, None)
    assert tracked.wait_seconds(OWNER, "1") == 0
