"""A client that keeps the versions it saw, and writes with them later: it must not be refused because of the operator.

Between two of its writes nothing happens that makes the Job controller write: then only the operator can cause a conflict.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from conformance.control_plane import ControlPlane
from conformance.life import Life, Lived
from conformance.recordings import Case, recorded_cases
from e2e.waiting import until
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource

_RESTARTED: Mapping[str, Any] = {
    "containerStatuses": [
        {
            "name": "main",
            "image": "",
            "imageID": "",
            "ready": True,
            "restartCount": 1,
            "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
        }
    ]
}


@dataclass(slots=True)
class StaleWrites:
    """What came of it.

    Attributes:
        refused: What could not be written, and after what, with the server's words.
        last_failure: `lastFailure` of the job's status after its launcher was restarted.
        error: What ended it early.
    """

    refused: list[str] = field(default_factory=list[str])
    last_failure: Mapping[str, str] = field(default_factory=dict[str, str])
    error: Exception | None = None


class Client:
    """Writes with the versions that it holds."""

    def __init__(self, here: ControlPlane, namespace: str) -> None:
        self._here, self._namespace = here, namespace
        self._objects: dict[tuple[Resource, str], Object] = {}
        self._writes = 0

    async def hold(self, *desired: Resource) -> None:
        """Take all objects of these kinds as they are."""
        await self._here.follower.until_quiet(self._namespace)
        found = await self._here.follower.objects(self._namespace)
        for resource in desired:
            for each in found[resource.kind]:
                self._objects[resource, cast("Any", each)["metadata"]["name"]] = cast("Object", each)

    async def write(self, *desired: Resource) -> list[str]:
        """Set a label of each held object of these kinds once nothing changes any more; return what was refused, and why."""
        await self._here.follower.until_quiet(self._namespace)
        self._writes += 1
        refused: list[str] = []
        for (resource, name), held in self._objects.items():
            if resource not in desired:
                continue
            body: Any = {
                **held,
                "metadata": {**held["metadata"], "labels": {**held["metadata"].get("labels", {}), "held": f"{self._writes}"}},
            }
            try:
                self._objects[resource, name] = await self._here.client.update(resource, body)
            except StatusError as error:
                refused.append(f"{resource.kind} {name}: {error.status_message}")
        return refused

    async def patch(self, resource: Resource, body: Mapping[str, Any], *, subresource: str = "") -> None:
        """Change the first object of that kind, with the version that is held, and hold what comes of it."""
        key = next(key for key in self._objects if key[0] is resource)
        version = self._objects[key]["metadata"].get("resourceVersion", "")
        whole = {**body, "metadata": {"resourceVersion": version}}
        self._objects[key] = await self._here.client.patch(resource, Key(self._namespace, key[1]), whole, subresource=subresource)

    async def job(self) -> Mapping[str, Any]:
        """Return the MPIJob."""
        return cast("Mapping[str, Any]", await self._here.client.get(MPIJOBS, Key(self._namespace, "job")))


async def hold(here: ControlPlane, turn: asyncio.Lock) -> StaleWrites:
    """Live with the operator as such a client."""
    [recorded] = [case for case in recorded_cases() if case.name == "openmpi"]
    case = Case("held", recorded.mpijob, recorded.stages[:1])
    held, life = StaleWrites(), Life(case, here.client, here.follower)
    lived: Lived = await life.live(turn)
    try:
        if lived.error is not None:
            raise lived.error
        await _steps(held, life, Client(here, life.namespace))
    except (StatusError, TimeoutError) as error:
        held.error = error
    return held


async def _tells_failure(held: StaleWrites, client: Client) -> bool:
    held.last_failure = (await client.job())["status"].get("lastFailure", {})
    return bool(held.last_failure)


async def _steps(held: StaleWrites, life: Life, client: Client) -> None:
    made_once = (SERVICES, SECRETS, JOBS)
    await client.hold(MPIJOBS, CONFIG_MAPS, *made_once)
    held.refused += await client.write(MPIJOBS, CONFIG_MAPS, *made_once)
    held.refused += [f"after labels were set: {each}" for each in await client.write(MPIJOBS, CONFIG_MAPS, *made_once)]
    await life.reach("workers-ready")
    held.refused += [f"after the workers were Ready: {each}" for each in await client.write(*made_once)]
    await life.reach("running")
    everything = (MPIJOBS, CONFIG_MAPS, PODS, *made_once)
    await client.hold(*everything)
    await client.patch(PODS, {"status": _RESTARTED}, subresource="status")
    held.refused += [f"after the launcher was restarted: {each}" for each in await client.write(CONFIG_MAPS, PODS, *made_once)]
    with contextlib.suppress(TimeoutError):
        await until("the last failure", lambda: _tells_failure(held, client), timeout_seconds=10)
    await client.hold(MPIJOBS)
    await client.patch(MPIJOBS, {"spec": {"runPolicy": {"cleanPodPolicy": "All"}}})
    held.refused += [f"after an edit that changes nothing yet: {each}" for each in await client.write(*everything)]
