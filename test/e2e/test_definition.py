"""The CRD comes after the operator, goes, and returns: the operator waits for it, and deletes nothing. An upgrade of it is not an edit."""

import asyncio
import json
from pathlib import Path
from typing import Any

from bench.operator_process import OperatorProcess, ours, start_operator
from conformance.control_plane import ControlPlane, control_plane
from demonstration.cluster import environment_of
from e2e.admission import UNKNOWN, definition, preserving
from e2e.audit import requests_of_operators
from e2e.waiting import until
from faults.state import conditions, objects
from faults.testbed import command
from fuzz.jobs import good_job
from mpiop.controller import names
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES

CLUSTER = "e2e-definition"
CRD = "manifests/base/kubeflow.org_mpijobs.yaml"
CHILDREN = (PODS, JOBS, SERVICES, CONFIG_MAPS)
SURVIVED_SECONDS = 3


async def kubectl(*arguments: str, stdin: str = "") -> None:
    """Run kubectl as the cluster's administrator."""
    await command("kubectl", *arguments, stdin=stdin, environment=environment_of(CLUSTER))


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


async def is_created(here: ControlPlane, name: str) -> bool:
    """Create a job; return whether the server takes it (it may take a moment to serve a new CRD)."""
    body: Object = {**good_job(name)}  # type: ignore[typeddict-item]  # a manifest
    body["metadata"]["namespace"] = "default"
    try:
        await here.client.create(MPIJOBS, body)
    except KubeError:
        return False
    return True


async def run_a_job(here: ControlPlane, name: str) -> None:
    """Create a job, and return when its Pods are there."""
    await until("a server that takes jobs", lambda: is_created(here, name))

    async def has_pods() -> bool:
        return len(await objects(here.client, PODS, "default")) == 3

    await until(f"the Pods of {name}", has_pods)


async def until_readiness(process: OperatorProcess, *, is_ready: bool) -> None:
    """Wait until /readyz reports it."""

    async def is_said() -> bool:
        return await process.is_ready() is is_ready

    await until(f"/readyz to be {is_ready}", is_said, timeout_seconds=120)


async def test_F55_the_operator_waits_for_a_CRD_that_is_absent_or_goes_and_deletes_no_child(tmp_path: Path) -> None:
    async with control_plane(tmp_path, CLUSTER) as here:
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


class Upgrade:
    """A control plane whose CRD is upgraded under jobs that have a field which only the CRD before kept."""

    def __init__(self, here: ControlPlane) -> None:
        self.here = here

    async def define(self, crd: dict[str, Any], *, is_kept: bool) -> None:
        """Put a CRD in place, and return when the API server goes by it."""
        await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(crd))
        probe: Any = {**job_with_unknown_fields("probe"), "metadata": {"name": "probe", "namespace": "default"}}

        async def is_taken_up() -> bool:
            made: Any = await self.here.client.create(MPIJOBS, probe, is_dry_run=True)
            return (UNKNOWN in made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]) is is_kept

        await until("the API server to go by the CRD", is_taken_up)

    async def create(self, name: str, **policy: Any) -> None:
        """Create a job."""
        body: Any = job_with_unknown_fields(name)
        body["metadata"]["namespace"] = "default"
        body["spec"]["runPolicy"] = policy
        await self.here.client.create(MPIJOBS, body)

    async def edit(self, name: str, **spec: Any) -> None:
        """Change the spec of a job."""
        await self.here.client.patch(MPIJOBS, Key("default", name), {"spec": spec})

    async def until_condition(self, name: str, type_: str, *, is_true: bool = True) -> None:
        """Wait for a condition of a job."""

        async def has_it() -> bool:
            found = {each["metadata"]["name"]: conditions(each) for each in await objects(self.here.client, MPIJOBS, "default")}
            return (found[name].get(type_) == "True") is is_true

        await until(f"{type_} of {name} to be {is_true}", has_it)

    async def pods(self) -> dict[str, str]:
        """Return the UIDs of the Pods by name."""
        return {each["metadata"]["name"]: uid_of(each) for each in await objects(self.here.client, PODS, "default")}

    async def until_pod(self, name: str, *, other_than: str = "") -> None:
        """Wait for a Pod of that name."""

        async def is_there() -> bool:
            return (await self.pods()).get(name, other_than) != other_than

        await until(f"a new Pod {name}", is_there)

    async def is_pending(self) -> dict[str, bool]:
        """Return, by job, whether an edit is reported to be pending."""
        return {
            each["metadata"]["name"]: conditions(each).get("UpdatePending") == "True"
            for each in await objects(self.here.client, MPIJOBS, "default")
        }


def job_with_unknown_fields(name: str) -> dict[str, Any]:
    """Return a job whose templates have a field that no Kubernetes knows."""
    made = good_job(name)
    for role in made["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"][UNKNOWN] = {"a": [1]}
    return made


async def test_an_upgrade_of_the_CRD_that_drops_fields_of_jobs_is_no_edit(tmp_path: Path) -> None:
    async with control_plane(tmp_path, CLUSTER) as here:
        upgrade = Upgrade(here)
        await upgrade.define(preserving(), is_kept=True)
        async with here.operator("before"):
            for name in ("running", "earlier"):
                await upgrade.create(name)
                await upgrade.until_condition(name, "Warnings")
            await upgrade.create("suspended", suspend=True)
            await upgrade.until_condition("suspended", "Suspended")
        forgotten = {"metadata": {"annotations": {names.ANNOTATION_START_GENERATION: None}}}
        await here.client.patch(JOBS, Key("default", "earlier-launcher"), forgotten)
        await upgrade.define(definition(), is_kept=False)
        assert [UNKNOWN in json.dumps(each["spec"]) for each in await objects(here.client, MPIJOBS, "default")] == [False] * 3

        async with here.operator("after"):
            # What follows each needs a sync of its job.
            worker = (await upgrade.pods())["running-worker-0"]
            await here.client.delete(PODS, Key("default", "running-worker-0"), uid=worker)
            await upgrade.until_pod("running-worker-0", other_than=worker)
            await upgrade.edit("earlier", mpiReplicaSpecs={"Worker": {"replicas": 3}})
            await upgrade.until_pod("earlier-worker-2")
            await upgrade.edit("suspended", runPolicy={"suspend": False})
            await upgrade.until_pod("suspended-worker-0")
            await upgrade.until_condition("suspended", "Suspended", is_true=False)
            assert await upgrade.is_pending() == {"running": False, "earlier": False, "suspended": False}

            for name in ("running", "suspended"):
                await upgrade.edit(name, slotsPerWorker=2)
                await upgrade.until_condition(name, "UpdatePending")
