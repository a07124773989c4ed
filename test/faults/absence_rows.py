"""Rows about what goes away: the namespace, and the operator while the job ends."""

from collections.abc import Iterator

from faults.case import Case
from faults.enumeration import Lifecycles
from faults.lifecycles import job, until_addresses, until_condition, until_hosts, until_workers
from faults.neighbours import change, change_job, remove, stay_calm, until_gone, until_reason, until_there
from faults.object_rows import alone
from faults.rows import Row
from faults.run import Action, Run
from faults.state import JOB, conditions, objects
from faults.testbed import NAMESPACE, NAMESPACES, delete_namespace
from mpiop.kube.objects import is_terminating
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES


def f61(_: Lifecycles) -> Iterator[Case]:
    """The namespace is deleted, in each phase of the job."""
    for phase in ("created", "running", "suspended", "ended"):
        yield alone("F61", f"deleted when {phase}", _namespace_goes(phase), replicas=0)


def _namespace_goes(phase: str) -> Action:
    async def live(run: Run) -> None:
        # The Lease would go with the namespace.
        await run.launch(flags=(f"--lock-namespace={NAMESPACE}", f"--lease-name={run.namespace}")).start()
        await run.testbed.client.create(MPIJOBS, job(run))
        await _until(run, phase)
        run.bystanders.clear()
        await delete_namespace(run.testbed.client, run.namespace)

        async def is_gone() -> bool:
            await _end_pods(run)
            return await run.find(NAMESPACES, run.namespace) is None

        await run.until("the end of the namespace", is_gone)
        await stay_calm(run)

    return live


async def _end_pods(run: Run) -> None:
    """Do what a node's kubelet does with deleted Pods: the Job controller removes its finalizer only from those that have ended."""
    for pod in await objects(run.testbed.client, PODS, run.namespace):
        if is_terminating(pod):
            await change(run, PODS, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, subresource="status")


async def _until(run: Run, phase: str) -> None:
    """Bring the job, which was just created, into a phase."""
    if phase == "created":
        await until_there(run, SERVICES, JOB)
        return
    await until_workers(run, 2)
    await until_condition(run, "Running")
    if phase == "suspended":
        await change_job(run, {"runPolicy": {"suspend": True}})
        await until_condition(run, "Suspended")
        await until_workers(run, 0)
    elif phase == "ended":
        run.end_launcher("Succeeded")
        await until_condition(run, "Succeeded")


def f70(lifecycles: Lifecycles) -> Iterator[Case]:
    """No operator runs while the job ends; what its end was is found out afterwards, or reported to be unknown."""
    for lifecycle in ("succeed", "fail"):
        if lifecycle in lifecycles:
            yield Case("F70", lifecycle, "ended while no operator ran", stages=(("running", _end_unseen(lifecycle)),), wants_hit=False)
    yield alone("F70", "launcher and Pods gone while no operator ran", _all_gone)


def _end_unseen(lifecycle: str) -> Action:
    async def end(run: Run) -> None:
        await until_hosts(run, 2)
        await until_addresses(run, 2)
        await run.replicas[0].stop()
        run.end_launcher("Succeeded" if lifecycle == "succeed" else "Failed")
        ended = {"Complete", "Failed"}
        await run.until_object(
            JOBS, "pi-launcher", "a launcher Job that has ended", lambda launcher: bool(ended & conditions(launcher).keys())
        )
        await run.replicas[0].start()

    return end


async def _all_gone(run: Run) -> None:
    await run.testbed.client.create(MPIJOBS, job(run))
    await until_workers(run, 2)
    await until_condition(run, "Running")
    await run.replicas[0].stop()
    await remove(run, JOBS, "pi-launcher")
    for index in range(2):
        await remove(run, PODS, f"pi-worker-{index}")
    await until_gone(run, JOBS, "pi-launcher")
    await run.replicas[0].start()
    await until_reason(run, "Failed", "LauncherJobNotFound")
    if await run.find(CONFIG_MAPS, "pi-config") is None or await run.find(JOBS, "pi-launcher") is not None:
        run.findings.append("after the end something was made again, or is gone")


ABSENCES = (
    Row("F61", "the namespace is deleted", f61),
    Row("F70", "the job ends while no operator runs", f70),
)
