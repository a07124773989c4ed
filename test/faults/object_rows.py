"""Rows about objects: unknown, huge and strange ones, crowds of others', names that are taken."""

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import Any, cast

from faults.case import Case
from faults.enumeration import Lifecycles
from faults.lifecycles import job, until_addresses, until_condition, until_hosts, until_workers
from faults.neighbours import (
    CHILDREN,
    CONTAINERS,
    change,
    change_job,
    events_of,
    make,
    remove,
    stay_calm,
    until_reason,
    until_there,
)
from faults.rows import Row
from faults.run import Action, Run
from faults.state import BYSTANDER, JOB, conditions
from mpiop.kube.objects import Object, uid_of
from mpiop.kube.resources import MPIJOBS, PODS

IDLE_SECONDS = 180.0
"""What blocks a job is checked again after up to a minute."""
CROWD, CHANGES = 300, 5
"""Pods of others, and how often each is changed."""
OTHERS_NOTE = "example.org/of-another"
LONG_NAME = "j" * 54
STRANGE_NOTE = "\u202e😀\u0000é\n{0}%s$(id)"
LONG_ARGUMENT = "x" * 20_000


def job_with(run: Run, edit: Callable[[Any], object]) -> Object:
    """Return the run's job with its spec edited."""
    made: Any = copy.deepcopy(job(run))
    edit(made["spec"])
    return cast("Object", made)


def alone(row: str, what: str, own: Action, *, seconds: float = 120.0, replicas: int = 1) -> Case:
    """Return a case that no faultless life is compared with."""
    return Case(row, "alone", what, own=own, seconds=seconds, replicas=replicas, wants_hit=False)


async def live_on(run: Run, made: Object, name: str = JOB) -> None:
    """Create a job of two workers, let it run, and succeed."""
    await run.testbed.client.create(MPIJOBS, made)
    await until_workers(run, 2)
    run.end_launcher("Succeeded")
    await run.until_object(MPIJOBS, name, f"{name} to succeed", lambda found: conditions(found).get("Succeeded") == "True")


async def start(run: Run) -> None:
    """Create the run's job, and let it run until nothing is left to do."""
    await run.testbed.client.create(MPIJOBS, job(run))
    await until_workers(run, 2)
    await until_condition(run, "Running")
    await until_hosts(run, 2)
    await until_addresses(run, 2)


def f56(_: Lifecycles) -> Iterator[Case]:
    """Fields that we do not know: those of a newer Kubernetes in a job, and others' annotations on everything that is made of it."""
    yield alone("F56", "a field of the future in a template", _future)
    stages = (("running", _annotate), ("ended", _check_annotations))
    for lifecycle in ("succeed", "suspend"):
        yield Case("F56", lifecycle, "annotations of others", stages=stages, wants_hit=False)


async def _future(run: Run) -> None:
    field = {"evictionResponders": [{"name": "example.com/drain", "priority": 1}]}  # of Kubernetes 1.37
    made = job_with(run, lambda spec: spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update(field))
    await live_on(run, made)
    stored: Any = await run.job()
    if stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"].get("evictionResponders") != field["evictionResponders"]:
        run.findings.append("a field that the operator does not know is gone from the job")
    await until_reason(run, "Warnings", "TemplateWarnings", "evictionResponders")


async def _annotate(run: Run) -> None:
    for resource, name in (CHILDREN["Service"], CHILDREN["ConfigMap"], CHILDREN["Job"], (MPIJOBS, JOB)):
        await change(run, resource, name, {"metadata": {"annotations": {OTHERS_NOTE: "kept"}}})


async def _check_annotations(run: Run) -> None:
    for resource, name in (CHILDREN["Service"], CHILDREN["ConfigMap"], CHILDREN["Job"], (MPIJOBS, JOB)):
        if (await run.find(resource, name))["metadata"].get("annotations", {}).get(OTHERS_NOTE) != "kept":
            run.findings.append(f"another's annotation is gone from {resource.kind} {name}")


def f57(_: Lifecycles) -> Iterator[Case]:
    """Jobs that are huge: what cannot be made is reported and not tried all the time, what can be made runs."""
    yield alone("F57", "more workers than a ConfigMap holds hosts", _too_many_workers)
    yield alone("F57", "a command of 20,000 characters", _long_command)
    yield alone("F57", "a template of 1.5 MB", _huge_template)
    yield alone("F57", "an annotation that is too long for a Pod", _long_annotation)


async def _too_many_workers(run: Run) -> None:
    await run.testbed.client.create(MPIJOBS, job_with(run, lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=20_000)))
    await until_reason(run, "Stalled", "ValidationError", "do not fit into a ConfigMap")
    await stay_calm(run)
    if made := run.proxy.trace.effects("create"):
        run.findings.append(f"made of a job that cannot be: {made}")
    await change_job(run, {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}})
    await until_workers(run, 2)


async def _long_command(run: Run) -> None:
    def edit(spec: Any) -> None:
        for role in spec["mpiReplicaSpecs"].values():
            role["template"]["spec"]["containers"][0]["args"].append(LONG_ARGUMENT)

    await live_on(run, job_with(run, edit))


async def _huge_template(run: Run) -> None:
    """A request to etcd has at most 1.5 MiB."""
    variable = {"name": "BIG", "value": "x" * 1_500_000}
    await live_on(run, job_with(run, lambda spec: _worker(spec)["containers"][0].update(env=[variable])))


async def _long_annotation(run: Run) -> None:
    """The schema of an MPIJob does not limit the annotations of its templates; the API server limits those of Pods to 256 KiB."""

    def edit(spec: Any) -> None:
        spec["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {"annotations": {"example.org/long": "x" * 300_000}}

    await run.testbed.client.create(MPIJOBS, job_with(run, edit))
    await until_reason(run, "Stalled", "ValidationError", "annotations")
    await stay_calm(run)


def _worker(spec: Any) -> Any:
    return spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]


def f58(_: Lifecycles) -> Iterator[Case]:
    """Names at their limits, and text that breaks terminals and formats."""
    yield alone("F58", "the longest name", _longest_name)
    yield alone("F58", "strange text", _strange_text)


async def _longest_name(run: Run) -> None:
    made: Any = job(run, LONG_NAME)
    await live_on(run, made, LONG_NAME)


async def _strange_text(run: Run) -> None:
    def edit(spec: Any) -> None:
        for role in spec["mpiReplicaSpecs"].values():
            role["template"]["metadata"] = {"annotations": {"example.org/note": STRANGE_NOTE}}
            role["template"]["spec"]["containers"][0]["args"].append(STRANGE_NOTE)
            role["template"]["spec"]["containers"][0]["env"] = [{"name": "NUMBER", "value": "0x1e309"}]

    await live_on(run, job_with(run, edit))
    pod: Any = await run.find(PODS, "pi-worker-0")
    if pod is not None and STRANGE_NOTE not in pod["spec"]["containers"][0]["args"]:
        run.findings.append("text was changed on its way into a Pod")


async def _crowd(run: Run) -> None:
    """Many Pods of others are created and change while a job runs."""
    await start(run)
    await asyncio.sleep(3)  # the second write of the addresses comes two seconds after the first
    before = await _syncs(run)
    turns = asyncio.Semaphore(8)

    async def come_and_change(index: int) -> None:
        async with turns:
            name = f"{BYSTANDER}-{index}"
            await make(run, PODS, name, spec=CONTAINERS)
            for number in range(CHANGES):
                await change(run, PODS, name, {"metadata": {"annotations": {OTHERS_NOTE: str(number)}}})

    await asyncio.gather(*(come_and_change(index) for index in range(CROWD)))
    if (more := await _syncs(run) - before) > 0:
        run.findings.append(f"{more:.0f} syncs because of {CROWD} Pods that are not ours")


async def _syncs(run: Run) -> float:
    page = await run.replicas[0].fetch("/metrics")
    lines = [line for line in page.splitlines() if line.startswith("workqueue_adds_total")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def f60(_: Lifecycles) -> Iterator[Case]:
    """Each name that a job needs is taken: by nobody's object, and by that of another job."""
    for kind in CHILDREN:
        for owner in ("nobody", "another job"):
            take, give = _take(kind, has_owner=owner != "nobody"), _give_back(kind)
            yield Case(
                "F60", "succeed", f"{kind} of {owner}", stages=(("begin", take),), script=give, seconds=IDLE_SECONDS, wants_hit=False
            )


def _take(kind: str, *, has_owner: bool) -> Action:
    async def take(run: Run) -> None:
        metadata: dict[str, Any] = {"annotations": {OTHERS_NOTE: "mine"}}
        if has_owner:
            spec = {**cast("dict[str, Any]", job(run))["spec"], "runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}
            other = await make(run, MPIJOBS, f"{BYSTANDER}-job", spec=spec)
            owner = {"apiVersion": MPIJOBS.api_version, "kind": MPIJOBS.kind, "name": f"{BYSTANDER}-job", "uid": uid_of(other)}
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        resource, name = CHILDREN[kind]
        bodies: dict[str, dict[str, Any]] = {
            "Service": {"spec": {"ports": [{"port": 80}]}},
            "Job": {"spec": {"suspend": True, "template": {"spec": CONTAINERS}}},
            "Pod": {"spec": CONTAINERS},
        }
        await make(run, resource, name, metadata=metadata, **bodies.get(kind, {}))

    return take


def _give_back(kind: str) -> Callable[[Run], Any]:
    async def give_back(run: Run) -> None:
        await until_there(run, MPIJOBS, JOB)
        resource, name = CHILDREN[kind]
        await until_reason(run, "Stalled", "ResourceExists", name)
        await run.until("the event", lambda: _is_reported(run))
        # The Job controller and the kubelet write to it as well, so its version does not report whether the operator did.
        touched = [each for each in run.proxy.trace.effects("patch", "update", "delete") if each.endswith(f" {resource.plural}/{name}")]
        now: Any = await run.find(resource, name)
        if touched or OTHERS_NOTE not in now["metadata"].get("annotations", {}):
            run.findings.append(f"somebody else's {kind} {name} was touched: {touched}")
        await remove(run, resource, name)
        await until_condition(run, "Running")
        if len(await events_of(run, "ErrResourceExists")) != 1:
            run.findings.append("more than one event ErrResourceExists")

    return give_back


async def _is_reported(run: Run) -> bool:
    return bool(await events_of(run, "ErrResourceExists"))


OBJECTS = (
    Row("F56", "fields that we do not know", f56),
    Row("F57", "huge jobs", f57),
    Row("F58", "names and text at their limits", f58),
    Row("F59", "a crowd of Pods of others", lambda _: [alone("F59", "a crowd of others' Pods", _crowd)]),
    Row("F60", "names that are taken", f60),
)
