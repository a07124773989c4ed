"""Whole lives of a job, as its user and its pods live them; each waits for what the user would see, not for time."""

import copy
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

import yaml

from demonstration.cluster import ROOT
from faults.run import Run
from faults.state import JOB, conditions, objects, published_addresses, role
from faults.testbed import NODE
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS

PI = ROOT / "examples" / "v2beta1" / "pi" / "pi.yaml"
Lifecycle = Callable[[Run], Awaitable[None]]


def job(run: Run, name: str = JOB) -> Object:
    """Return the example's MPIJob for the run; no scheduler handles its pods, and its watch events hold characters of many bytes."""
    made: Any = copy.deepcopy(yaml.safe_load(PI.read_text(encoding="utf-8")))
    made["metadata"] = {"name": name, "namespace": run.namespace, "annotations": {"example.org/note": "π ≈ 3.14 🥧"}}
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"]["schedulerName"] = "nobody"
        replica["template"].setdefault("metadata", {})["annotations"] = {"example.org/note": "π"}
    # Addresses are published only to a launcher that has a node. It goes without a kubelet's consent, and stays though no node answers.
    launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    launcher |= {"nodeName": NODE, "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}]}
    made["spec"]["runPolicy"]["backoffLimit"] = 0
    return cast("Object", made)


async def create(run: Run) -> None:
    """Create the job."""
    await run.reach("begin")
    await run.testbed.client.create(MPIJOBS, job(run))
    await run.reach("created")


async def until_condition(run: Run, type_: str) -> None:
    """Wait until the job's condition is True."""
    await run.until_object(MPIJOBS, JOB, f"MPIJob condition {type_}", lambda job: conditions(job).get(type_) == "True")


async def until_workers(run: Run, count: int) -> None:
    """Wait until the job has so many worker pods that run."""

    async def are_there() -> bool:
        pods = await objects(run.testbed.client, PODS, run.namespace)
        workers = [pod for pod in pods if role(pod) == "worker" and not pod["metadata"]["name"].startswith("bystander")]
        return len(workers) == count and all(pod.get("status", {}).get("phase") == "Running" for pod in workers)

    await run.until(f"{count} running workers", are_there)


async def until_hosts(run: Run, count: int) -> None:
    """Wait until discover_hosts.sh lists so many workers: that follows with a delay, and never after the end."""
    what = f"{count} hosts in discover_hosts.sh"
    await run.until_object(CONFIG_MAPS, f"{JOB}-config", what, lambda found: found["data"]["discover_hosts.sh"].count("echo ") == count)


async def until_addresses(run: Run, count: int) -> None:
    """Wait until the addresses of so many workers are published to the launcher's pod."""

    async def are_published() -> bool:
        pods = await objects(run.testbed.client, PODS, run.namespace)
        return [len(published_addresses(pod)) for pod in pods if role(pod) == "launcher"] == [count]

    await run.until(f"{count} addresses at the launcher", are_published)


async def succeed(run: Run) -> None:
    """Create, run, succeed, clean up."""
    await create(run)
    await _run_and_end(run, "Succeeded")


async def fail(run: Run) -> None:
    """Create, run, fail, clean up."""
    await create(run)
    await _run_and_end(run, "Failed")


async def suspend(run: Run) -> None:
    """Create, run, suspend, resume, run, succeed, clean up."""
    await create(run)
    await until_workers(run, 2)
    await until_condition(run, "Running")
    await run.reach("running")
    await _set_suspended(run, value=True)
    await until_condition(run, "Suspended")
    await until_workers(run, 0)
    # The condition of the MPIJob may come before the Job controller has suspended the launcher.
    what = "a launcher Job that knows that it is suspended"
    await run.until_object(JOBS, f"{JOB}-launcher", what, lambda launcher: conditions(launcher).get("Suspended") == "True")
    await run.reach("suspended")
    await _set_suspended(run, value=False)
    await _run_and_end(run, "Succeeded", "resumed")


async def restart(run: Run) -> None:
    """Create with a budget of restarts, run, lose a worker, be restarted, succeed, clean up."""
    made = job(run)
    made["metadata"]["annotations"] |= {"mpiop.kubeflow.org/max-restarts": "1"}
    await run.reach("begin")
    await run.testbed.client.create(MPIJOBS, made)
    await run.reach("created")
    await until_workers(run, 2)
    await until_condition(run, "Running")
    await until_addresses(run, 2)
    await run.reach("running")
    await _lose_worker(run)
    await run.until_object(MPIJOBS, JOB, "the end of the restart", _is_restarted)
    await _run_and_end(run, "Succeeded", "restarted")


LIFECYCLES: dict[str, Lifecycle] = {"succeed": succeed, "fail": fail, "suspend": suspend, "restart": restart}


STAGES = ("begin", "created", "running", "suspended", "resumed", "restarted", "ended")
"""Where a life waits for what a case does there, see `Run.reach`; only one life each has those between the third and the last."""


async def _run_and_end(run: Run, phase: str, stage: str = "running") -> None:
    await until_workers(run, 2)
    await until_condition(run, "Running")
    await run.reach(stage)
    await until_hosts(run, 2)
    await until_addresses(run, 2)
    run.end_launcher(phase)
    await until_condition(run, phase)
    await until_workers(run, 0)
    await run.reach("ended")


async def _lose_worker(run: Run) -> None:
    """Delete a worker by force, and not the one that takes its place."""
    worker, uids = Key(run.namespace, f"{JOB}-worker-1"), list[str]()

    async def is_read() -> bool:
        uids.append(uid_of(await run.testbed.client.get(PODS, worker)))
        return True

    async def is_lost() -> bool:
        try:
            await run.testbed.client.delete(PODS, worker, uid=uids[0], is_forced=True)
        except StatusError as error:
            return error.code in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
        return True

    await run.until("a worker", is_read)
    await run.until("its loss", is_lost)


def _is_restarted(stored: Any) -> bool:
    return bool(stored["status"].get("restarts") == 1 and conditions(stored).get("Restarting") == "False")


async def _set_suspended(run: Run, *, value: bool) -> None:
    async def is_set() -> bool:
        await run.testbed.client.patch(MPIJOBS, run.key, {"spec": {"runPolicy": {"suspend": value}}})
        return True

    await run.until("the change of suspend to be accepted", is_set)
