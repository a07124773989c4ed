"""How a launcher Job ended is known although it is gone: its last state is kept until the end is recorded."""

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from example_children import launcher
from example_jobs import PI
from fakes.cluster import SlowClient
from fakes.world import KEY, World, mpijob, running
from mpiop.controller.observe.deleted_launchers import LauncherJobs
from mpiop.informers.store import Notification, Store
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import JOBS, SECRETS
from virtual_time import VirtualClock

LAUNCHER = Key("default", "pi-launcher")
ENDED = launcher(outcome={"type": "Complete"})
DEADLINE = {"type": "Failed", "reason": "DeadlineExceeded"}
SUCCEEDED = {"conditions": [{"type": "Succeeded", "status": "True"}]}


def stored_job(uid: str = PI.uid, status: Mapping[str, Any] | None = None) -> Object:
    """Return the MPIJob of the examples as it is stored."""
    job = mpijob()
    return {**job, "metadata": {**job["metadata"], "uid": uid}, "status": dict(status or {})}


def owned_by(launcher_job: Object, **owner: Any) -> Object:
    job = deepcopy(launcher_job)
    job["metadata"]["ownerReferences"][0].update(owner)  # type: ignore[typeddict-item]  # a test sets which fields
    return job


@pytest.mark.parametrize(
    ("deleted", "job", "is_kept"),
    [
        pytest.param(ENDED, stored_job(), True, id="it succeeded"),
        pytest.param(launcher(outcome=DEADLINE), stored_job(), True, id="it failed"),
        pytest.param(launcher(active=1), stored_job(), False, id="it had not ended"),
        pytest.param(ENDED, stored_job(status=SUCCEEDED), False, id="its end is recorded"),
        pytest.param(ENDED, stored_job(uid="another"), False, id="its MPIJob is gone, another has the name"),
        pytest.param(ENDED, None, False, id="its MPIJob is gone"),
        pytest.param(owned_by(ENDED, kind="Deployment"), stored_job(), False, id="it was somebody else's"),
        pytest.param(owned_by(ENDED, name="other"), stored_job(), False, id="it has not the name of a launcher"),
    ],
)
def test_the_last_state_is_kept_while_the_job_waits_for_it(deleted: Object, job: Object | None, *, is_kept: bool) -> None:
    jobs, mpijobs = Store(), Store()
    launchers = LauncherJobs(jobs, mpijobs)
    if job is not None:
        mpijobs.put(job)
    jobs.put(launcher(active=1))
    change = jobs.remove(deleted)
    assert change is not None
    launchers.job_changed(change)
    assert launchers.get(LAUNCHER) == (deleted if is_kept else None)


@pytest.mark.parametrize("change", ["its end is recorded", "the MPIJob is deleted"])
def test_it_is_forgotten_when_nobody_waits_for_it_any_more(change: str) -> None:
    mpijobs = Store()
    launchers = LauncherJobs(Store(), mpijobs)
    mpijobs.put(job := stored_job())
    launchers.job_changed(Notification(ENDED, None))
    changes = mpijobs.remove(job) if change == "the MPIJob is deleted" else mpijobs.put(stored_job(status=SUCCEEDED))
    assert changes is not None
    launchers.mpijob_changed(changes)
    mpijobs.put(job)
    assert launchers.get(LAUNCHER) is None


def test_a_job_that_exists_is_what_it_is() -> None:
    jobs, mpijobs = Store(), Store()
    launchers = LauncherJobs(jobs, mpijobs)
    mpijobs.put(stored_job())
    launchers.job_changed(Notification(ENDED, another := launcher(active=1)))
    assert launchers.get(LAUNCHER) is None, "a change is no deletion"
    another["metadata"]["uid"] = "another"
    jobs.put(another)
    launchers.job_changed(Notification(ENDED, another))
    assert launchers.get(LAUNCHER) == another


@pytest.mark.parametrize(("outcome", "condition"), [({"type": "Complete"}, "Succeeded"), (DEADLINE, "Failed")], ids=str)
async def test_a_launcher_that_was_deleted_before_a_sync_ends_its_job_as_it_did(outcome: dict[str, str], condition: str) -> None:
    world = await running(runPolicy={"ttlSecondsAfterFinished": 0})
    world.end_launcher(outcome["type"], **{name: text for name, text in outcome.items() if name != "type"})
    world.refresh()
    world.client.server.remove(JOBS, LAUNCHER)
    await world.sync_until_idle()
    end = world.status.conditions[-1]
    assert (end.type, end.status, end.reason) == (condition, "True", outcome.get("reason", "MPIJobSucceeded"))
    assert world.names(SECRETS) == [], "and its time to live is over"


async def test_a_deletion_that_is_heard_of_during_the_sync_counts() -> None:
    world = World(client=SlowClient(VirtualClock(), Random(1)))  # noqa: S311 - chance, not secrets
    await world.submit()
    await world.sync_until_idle()
    await world.run_job()
    world.end_launcher()
    ended = world.one(JOBS, LAUNCHER.name)
    world.client.server.remove(JOBS, LAUNCHER)
    world.stores[JOBS].replace((), world.stores[JOBS].resource_version)
    sync = asyncio.create_task(world.syncer.sync(KEY))
    asyncio.get_running_loop().call_soon(world.launchers.job_changed, Notification(ended, None))
    await sync
    assert world.status.is_true("Succeeded")
