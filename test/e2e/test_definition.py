"""The CRD comes after the operator, goes, and comes back: the operator waits for it, and deletes nothing."""

import asyncio
from pathlib import Path

from bench.operator_process import OperatorProcess, ours, start_operator
from conformance.place import Place, place
from demonstration.cluster import environment_of
from e2e.audit import requests_of_operators
from e2e.waiting import until
from faults.ground import command
from faults.state import objects
from fuzz.jobs import good_job
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Object
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES

CLUSTER = "e2e-definition"
CRD = "manifests/base/kubeflow.org_mpijobs.yaml"
CHILDREN = (PODS, JOBS, SERVICES, CONFIG_MAPS)
SURVIVED_SECONDS = 3


async def kubectl(*arguments: str) -> None:
    """Run kubectl as the cluster's administrator."""
    await command("kubectl", *arguments, environment=environment_of(CLUSTER))


async def define() -> None:
    """Put the CRD in place, and return when it is served."""
    await kubectl("apply", "--server-side", "-f", CRD)

    async def is_established() -> bool:
        try:
            await kubectl("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=1s")
        except RuntimeError:
            return False
        return True

    await until("an established CRD", is_established)


async def is_created(here: Place, name: str) -> bool:
    """Create a job; return whether the server takes it (it may take a moment to serve a new CRD)."""
    body: Object = {**good_job(name)}  # type: ignore[typeddict-item]  # a manifest
    body["metadata"]["namespace"] = "default"
    try:
        await here.client.create(MPIJOBS, body)
    except KubeError:
        return False
    return True


async def run_a_job(here: Place, name: str) -> None:
    """Create a job, and return when its Pods are there."""
    await until("a server that takes jobs", lambda: is_created(here, name))

    async def has_pods() -> bool:
        return len(await objects(here.client, PODS, "default")) == 3

    await until(f"the Pods of {name}", has_pods)


async def until_readiness(process: OperatorProcess, *, is_ready: bool) -> None:
    """Wait until /readyz says so."""

    async def is_said() -> bool:
        return await process.is_ready() is is_ready

    await until(f"/readyz to be {is_ready}", is_said, timeout_seconds=120)


async def test_F55_the_operator_waits_for_a_CRD_that_is_absent_or_goes_and_deletes_no_child(tmp_path: Path) -> None:
    async with place(tmp_path, CLUSTER) as here:
        await kubectl("delete", "-f", CRD)
        process = await start_operator(here.access, tmp_path, "operator", ours())
        try:
            async with process.alive():
                await asyncio.sleep(SURVIVED_SECONDS)
                await until_readiness(process, is_ready=False)
                await define()
                await until_readiness(process, is_ready=True)
                await run_a_job(here, "before")

                await kubectl("delete", "-f", CRD)
                await until_readiness(process, is_ready=False)
                await define()
                await until_readiness(process, is_ready=True)

                async def is_empty() -> bool:
                    found = [each for kind in CHILDREN for each in await objects(here.client, kind, "default")]
                    return [each for each in found if each["metadata"]["name"] != "kubernetes"] == []

                # While there is no such kind, the garbage collector cannot know that the owner is gone.
                await until("the garbage collector to remove what belonged to the job", is_empty, timeout_seconds=120)
                await run_a_job(here, "after")
        finally:
            await process.stop()
        assert "Traceback" not in (tmp_path / "operator.log").read_text(encoding="utf-8")
        await here.stop_api_server()
        assert [each for each in requests_of_operators(CLUSTER, "default") if each.verb == "delete"] == []
