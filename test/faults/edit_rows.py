"""Rows about what others do to a job and to what is made of it: finalizers, labels and owners, edits, deletions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from faults.case import Case
from faults.enumeration import Lifecycles
from faults.lifecycles import until_addresses, until_condition, until_workers
from faults.neighbours import CHILDREN, change, change_job, remove, stay_calm, until_gone, until_reason
from faults.object_rows import IDLE_SECONDS, alone, start
from faults.oracle import Allowance
from faults.rows import Row
from faults.run import Run
from faults.state import JOB, LOST_A_WORKER, objects, published_addresses, role
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import is_terminating, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource

FINALIZER = "example.org/hold"
LABEL = "training.kubeflow.org/operator-name"


def f64(lifecycles: Lifecycles) -> Iterator[Case]:
    """Finalizers of others keep a Pod or the job from going."""
    for lifecycle in lifecycles:
        hold = ("running", partial(_hold, PODS, "pi-worker-0"))
        yield Case("F64", lifecycle, "a worker that does not go", stages=(hold,), script=_remove_finalizer_after_a_while, wants_hit=False)
    again = Allowance(objects=frozenset({LOST_A_WORKER}), effects=frozenset({"create pods/pi-worker-0"}))
    yield Case("F64", "succeed", "a worker that is replaced late", stages=(("running", _replace_late),), allowance=again, wants_hit=False)
    yield alone("F64", "a job that does not go", _job_does_not_go)


async def _hold(resource: Resource, name: str, run: Run) -> None:
    await change(run, resource, name, {"metadata": {"finalizers": [FINALIZER]}})


async def _remove_finalizer(run: Run, resource: Resource, name: str) -> None:
    await change(run, resource, name, {"metadata": {"finalizers": None}})


async def _remove_finalizer_after_a_while(run: Run) -> None:
    await run.until_object(PODS, "pi-worker-0", "a worker that is leaving", is_terminating)
    await stay_calm(run)
    await _remove_finalizer(run, PODS, "pi-worker-0")


async def _replace_late(run: Run) -> None:
    await _hold(PODS, "pi-worker-0", run)
    before: Any = await run.find(PODS, "pi-worker-0")
    await remove(run, PODS, "pi-worker-0")
    await stay_calm(run)
    if uid_of(await run.find(PODS, "pi-worker-0")) != uid_of(before):
        run.findings.append("a worker was replaced before it was gone")
    await _remove_finalizer(run, PODS, "pi-worker-0")
    await _until_another(run, PODS, "pi-worker-0", uid_of(before))
    await until_workers(run, 2)


async def _until_another(run: Run, resource: Resource, name: str, uid: str) -> None:
    await run.until_object(resource, name, f"another {resource.kind} {name}", lambda found: uid_of(found) != uid)


async def _job_does_not_go(run: Run) -> None:
    await start(run)
    await _hold(MPIJOBS, JOB, run)
    await remove(run, MPIJOBS, JOB)
    await stay_calm(run)
    writes = len([entry for entry in run.proxy.trace.entries if entry.took_effect and entry.target.meaning.resource != "leases"])
    await _remove_finalizer(run, MPIJOBS, JOB)
    for resource, name in CHILDREN.values():
        await until_gone(run, resource, name)
    after = len([entry for entry in run.proxy.trace.entries if entry.took_effect and entry.target.meaning.resource != "leases"])
    if after > writes:
        run.findings.append("the operator wrote although the garbage collector removes what belonged to the job")


def f65(_: Lifecycles) -> Iterator[Case]:
    """Labels or owner of a child are taken away, or it gets an owner more."""
    for kind in ("Service", "ConfigMap", "Job", "Pod"):
        strip = partial(_strip, *CHILDREN[kind])
        # Watches select by the labels: a worker without them counts as deleted, until its creation is refused.
        allowance = Allowance(objects=frozenset({LOST_A_WORKER} if kind == "Pod" else ()))
        name = f"labels of the {kind}"
        yield Case("F65", "succeed", name, allowance=allowance, stages=(("running", strip),), seconds=IDLE_SECONDS, wants_hit=False)
    for kind in ("Service", "ConfigMap"):
        yield alone("F65", f"owner of the {kind}", partial(_orphaned, *CHILDREN[kind]), seconds=IDLE_SECONDS)
    yield alone("F65", "a second owner", _shared)


async def _strip(resource: Resource, name: str, run: Run) -> None:
    before: Any = await run.find(resource, name)
    await change(run, resource, name, {"metadata": {"labels": {LABEL: None}}})
    await run.until_object(resource, name, f"the labels of {name}", lambda found: LABEL in found["metadata"].get("labels", {}))
    if uid_of(await run.find(resource, name)) != uid_of(before):
        run.findings.append(f"{resource.kind} {name} was made anew")


async def _orphaned(resource: Resource, name: str, run: Run) -> None:
    """An object without its owner is not the job's any more: it is left alone, and when it goes there is another."""
    await start(run)
    orphan = await change(run, resource, name, {"metadata": {"ownerReferences": None}})
    await until_reason(run, "", "ResourceExists")
    await stay_calm(run)
    now: Any = await run.find(resource, name)
    if (uid_of(now), now["metadata"].get("ownerReferences")) != (uid_of(orphan), None):
        run.findings.append(f"{resource.kind} {name} was touched although it has no owner")
    await remove(run, resource, name)
    await _until_another(run, resource, name, uid_of(orphan))


async def _shared(run: Run) -> None:
    """An owner that is not the controller changes nothing, though it is the first in the list: children stay the job's, and keep both."""
    await start(run)
    other = run.bystanders[0]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": other["metadata"]["name"], "uid": uid_of(other)}
    shared = list[Any]()
    for resource, name in CHILDREN.values():
        found: Any = await run.find(resource, name)
        owners = [owner, *found["metadata"]["ownerReferences"]]
        shared.append(await change(run, resource, name, {"metadata": {"ownerReferences": owners}}))
    await stay_calm(run)
    for (resource, name), before in zip(CHILDREN.values(), shared, strict=True):
        now: Any = await run.find(resource, name)
        if (uid_of(now), now["metadata"]["ownerReferences"]) != (uid_of(before), before["metadata"]["ownerReferences"]):
            run.findings.append(f"{resource.kind} {name} was changed or made anew because of a second owner")
    run.end_launcher("Succeeded")
    await until_condition(run, "Succeeded")
    await until_workers(run, 0)


def f66(lifecycles: Lifecycles) -> Iterator[Case]:
    """A running job is edited: nothing is torn down, and a condition reports that the edit waits."""
    for lifecycle in lifecycles:
        # A resume takes the edit up, by another launcher Job, and a restart what may change in the template of a Job.
        anew = {"suspend": {"jobs/pi-launcher", "pods/launcher"}, "restart": {"pods/launcher"}}.get(lifecycle, set[str]())
        again = {"create jobs/pi-launcher", "delete jobs/pi-launcher"} if lifecycle == "suspend" else set[str]()
        edited = Allowance(objects=frozenset({"mpijobs/pi", "configmaps/pi-config", *anew}), effects=frozenset(again))
        yield Case("F66", lifecycle, "another program", stages=(("running", _edit),), allowance=edited, wants_hit=False)
    yield alone("F66", "another manager", _other_manager)


async def _edit(run: Run) -> None:
    before: Any = await run.find(JOBS, "pi-launcher")
    await change_job(run, {"slotsPerWorker": 4, "mpiReplicaSpecs": {"Launcher": {"template": {"metadata": {"labels": {"edited": "yes"}}}}}})
    await until_reason(run, "UpdatePending", "EditedAfterStart")
    now: Any = await run.find(JOBS, "pi-launcher")
    if (uid_of(now), now["spec"]["template"]) != (uid_of(before), before["spec"]["template"]):
        run.findings.append("the launcher of a running job was changed or made anew")


async def _other_manager(run: Run) -> None:
    await start(run)
    try:
        await change_job(run, {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}})
    except StatusError as error:
        if "managedBy is immutable" not in error.status_message:
            run.findings.append(f"refused for another reason: {error}")
    else:
        run.findings.append("managedBy of a running job was changed")


def f67(_: Lifecycles) -> Iterator[Case]:
    """A child is deleted or edited by hand while the job runs."""
    for kind in ("Service", "ConfigMap", "Pod"):
        resource, name = CHILDREN[kind]
        reported = frozenset({LOST_A_WORKER} if kind == "Pod" else ())
        again = Allowance(objects=reported, effects=frozenset({f"create {resource.plural}/{name}"}))
        delete = partial(_delete_and_wait, resource, name)
        yield Case("F67", "succeed", f"{kind} deleted", stages=(("running", delete),), allowance=again, wants_hit=False)
    restore = partial(_spoil, CONFIG_MAPS, "pi-config", {"data": {"hostfile": "elsewhere slots=99\n"}})
    yield Case("F67", "succeed", "ConfigMap edited", stages=(("running", restore),), wants_hit=False)
    restore = partial(_spoil, SERVICES, "pi", {"spec": {"selector": {"app": "another"}}})
    yield Case("F67", "succeed", "Service edited", stages=(("running", restore),), wants_hit=False)
    yield Case("F67", "succeed", "addresses edited", stages=(("running", _spoil_addresses),), wants_hit=False)
    yield alone("F67", "Job deleted", _launcher_lost)
    yield alone("F67", "Secret deleted", _secret_lost, seconds=IDLE_SECONDS)


async def _delete_and_wait(resource: Resource, name: str, run: Run) -> None:
    before: Any = await run.find(resource, name)
    await remove(run, resource, name)
    await _until_another(run, resource, name, uid_of(before))
    await until_workers(run, 2)


async def _spoil(resource: Resource, name: str, body: dict[str, Any], run: Run) -> None:
    [(section, fields)] = body.items()
    before: Any = await run.find(resource, name)
    await change(run, resource, name, body)
    was = {field: before[section][field] for field in fields}
    await run.until_object(resource, name, f"{name} as it was", lambda found: found[section] == found[section] | was)


async def _spoil_addresses(run: Run) -> None:
    await until_addresses(run, 2)
    [pod] = [each for each in await _launcher_pods(run) if not is_terminating(each)]
    name = pod["metadata"]["name"]
    await change(run, PODS, name, {"metadata": {"annotations": {"mpiop.kubeflow.org/addresses": "0 6.6.6.6"}}})
    await run.until_object(PODS, name, "the addresses as they were", lambda pod: len(published_addresses(pod)) == 2)


async def _launcher_pods(run: Run) -> list[Any]:
    return [pod for pod in await objects(run.testbed.client, PODS, run.namespace) if role(pod) == "launcher"]


async def _launcher_lost(run: Run) -> None:
    await start(run)
    await remove(run, JOBS, "pi-launcher")
    await until_reason(run, "Failed", "LauncherJobNotFound")
    await until_workers(run, 0)


async def _secret_lost(run: Run) -> None:
    """No Pod gets another key while others run with the old one; a resume gives all of them a new one."""
    await start(run)
    before: Any = await run.find(SECRETS, "pi-ssh")
    await remove(run, SECRETS, "pi-ssh")
    await remove(run, CONFIG_MAPS, "pi-config")  # without its note the Secret is looked up at once
    await until_reason(run, "", "SecretLost")
    if await run.find(SECRETS, "pi-ssh") is not None:
        run.findings.append("the key was changed under Pods that run")
    await change_job(run, {"runPolicy": {"suspend": True}})
    await until_condition(run, "Suspended")
    await until_workers(run, 0)
    await change_job(run, {"runPolicy": {"suspend": False}})
    await until_workers(run, 2)
    await _until_another(run, SECRETS, "pi-ssh", uid_of(before))


EDITS: tuple[Row, ...] = (
    Row("F64", "finalizers of others", f64),
    Row("F65", "labels and owners taken away", f65),
    Row("F66", "edits of a running job", f66),
    Row("F67", "children deleted and edited by hand", f67),
)
