"""The row about users who change their minds."""

from collections.abc import Iterator
from typing import Any

from faults.case import Case
from faults.enumeration import Lifecycles
from faults.lifecycles import job, until_condition, until_workers
from faults.neighbours import CHILDREN, change_job, remove, until_gone, until_there
from faults.object_rows import alone, start
from faults.rows import Row
from faults.run import Run
from faults.state import JOB
from mpiop.kube.objects import uid_of
from mpiop.kube.resources import JOBS, MPIJOBS

FLAPS = 6


def f68(_: Lifecycles) -> Iterator[Case]:
    """The user changes their mind faster than anything can follow."""
    yield alone("F68", "suspended and resumed", _flap_suspend)
    yield alone("F68", "scaled", _flap_scale)
    yield alone("F68", "deleted and created", _flap_delete)


async def _flap_suspend(run: Run) -> None:
    await run.testbed.client.create(MPIJOBS, job(run))
    for _ in range(FLAPS):
        await change_job(run, {"runPolicy": {"suspend": True}})
        await change_job(run, {"runPolicy": {"suspend": False}})
    await _end(run)


async def _flap_scale(run: Run) -> None:
    await start(run)
    for replicas in (*range(1, FLAPS), 2):
        await change_job(run, {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}})
    await _end(run)


async def _flap_delete(run: Run) -> None:
    for number in range(FLAPS):
        await run.testbed.client.create(MPIJOBS, job(run))
        if number % 2:
            await until_there(run, JOBS, "pi-launcher")
        await remove(run, MPIJOBS, JOB)
        await until_gone(run, MPIJOBS, JOB)
    await run.testbed.client.create(MPIJOBS, job(run))
    await _end(run)
    owner = uid_of(await run.job())
    for resource, name in (CHILDREN["Service"], CHILDREN["ConfigMap"], CHILDREN["Secret"], CHILDREN["Job"]):
        found: Any = await run.find(resource, name)
        if [each["uid"] for each in found["metadata"]["ownerReferences"]] != [owner]:
            run.findings.append(f"{resource.kind} {name} belongs to a job that is gone")


async def _end(run: Run) -> None:
    """Let the job run with two workers, and succeed; nothing is left over."""
    await until_workers(run, 2)
    await until_condition(run, "Running")
    run.end_launcher("Succeeded")
    await until_condition(run, "Succeeded")
    await until_workers(run, 0)


FLAPPING = (Row("F68", "changes of mind", f68),)
