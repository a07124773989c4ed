"""The life of a case: each stage is reached as it was when the recordings were made, by a client that reads nothing twice.

Who sets the phases of Pods goes by the version that it saw when a Pod was made, or that its own last write returned: a kubelet, a Job
controller or a user's program does so. That it is refused would mean that the operator wrote what others hold.
"""

import asyncio
import contextlib
import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from conformance.comparing import differences, listed, unlisted
from conformance.follower import Follower
from conformance.normal import normalised
from conformance.recordings import Case, Objects, Stage
from e2e.waiting import until
from faults.testbed import make_namespace
from mpiop.clock import format_time
from mpiop.kube.client import Client
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource

PATIENCE_SECONDS = 20.0
"""The Job controller makes the next Pod of a failed launcher after 10 s."""
LATEST_SECONDS = 10.0
SUPPORTS: tuple[tuple[Resource, str], ...] = ((SERVICES, "job"), (CONFIG_MAPS, "job-config"), (SECRETS, "job-ssh"), (JOBS, "job-launcher"))
REFUSED = "refused"
_RUNNING: Mapping[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_ROLE = "training.kubeflow.org/job-role"
_LAUNCHER, _WORKER = "launcher", "worker"


@dataclass(slots=True)
class Lived:
    """What came of one case.

    Attributes:
        stages: Objects of each stage that was reached, in order.
        ends: When each of them was complete, in seconds since 1970.
        seconds: How long after the creation of the MPIJob each of `SUPPORTS` was seen, by kind; without those that never came.
        error: What ended it early.
    """

    stages: list[Objects] = field(default_factory=list[Objects])
    ends: list[float] = field(default_factory=list[float])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    error: Exception | None = None


class Life:
    """One case in a namespace of its own."""

    def __init__(self, case: Case, client: Client, follower: Follower) -> None:
        self._case, self._client, self._follower = case, client, follower
        self._entries = listed()
        self.namespace = namespace_of(case.name)
        self._versions: dict[str, str] = {}
        self._pods: list[dict[str, Any]] = []

    async def live(self, turn: asyncio.Lock) -> Lived:
        """Go through all stages; who has the `turn` creates its MPIJob, so that times belong to one job at a time."""
        lived = Lived()
        try:
            await make_namespace(self._client, self.namespace)
            await until("the authority of the namespace", self._has_authority)
            for stage in self._case.stages:
                if not lived.stages:
                    async with turn:
                        await self._create(lived)
                else:
                    await self.reach(stage.name)
                lived.stages.append(await self._settled(stage))
                lived.ends.append(time.time())
        except (StatusError, TimeoutError) as error:
            lived.error = error
        return lived

    async def _create(self, lived: Lived) -> None:
        body: Any = copy.deepcopy(dict(self._case.mpijob))
        body["metadata"]["namespace"] = self.namespace
        try:
            await self._client.create(MPIJOBS, cast("Object", body))
        except StatusError as error:
            if error.is_conflict or self._case.stages[0].name != REFUSED:
                raise
            return
        begun = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            await until("all that comes at once", self._has_supports, timeout_seconds=LATEST_SECONDS, look_seconds=0.02)
        for resource, name in SUPPORTS:
            if (seen := self._follower.first_seen(resource, self.namespace, name)) is not None:
                lived.seconds[resource.kind] = seen - begun

    async def _has_supports(self) -> bool:
        desired = self._case.stages[0].objects
        return all(not desired[each.kind] or self._follower.first_seen(each, self.namespace, name) is not None for each, name in SUPPORTS)

    async def _has_authority(self) -> bool:
        return self._follower.first_seen(CONFIG_MAPS, self.namespace, "kube-root-ca.crt") is not None

    async def _settled(self, stage: Stage) -> Objects:
        """Return the objects when nothing changes any more, and they are as in the recording, for as long as that may take.

        On a busy machine the Job controller may be quiet for a while because it has no processor.
        """
        until_then = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            await self._follower.until_quiet(self.namespace)
            found: dict[str, Any] = await self._follower.objects(self.namespace)
            self._pods = [each for each in found["Pod"] if "deletionTimestamp" not in each["metadata"]]
            for pod in self._pods:
                self._versions.setdefault(pod["metadata"]["uid"], pod["metadata"]["resourceVersion"])
            objects = normalised(found, self.namespace)
            is_as_recorded = not unlisted(self._entries, differences(stage.objects, objects), f"{self._case.name}/{stage.name}")
            if is_as_recorded or asyncio.get_running_loop().time() > until_then:
                return objects

    async def reach(self, stage: str) -> None:
        """Do what a stage of that name begins with."""
        match stage:
            case "workers-ready":
                await self._set_phases(_WORKER, _RUNNING)
            case "running":
                await self._set_phases(_WORKER, _RUNNING)
                await self._set_phases(_LAUNCHER, _RUNNING)
            case "succeeded":
                await self._set_phases(_LAUNCHER, {"phase": "Succeeded"})
            case "failed" | "launcher-fails":
                await self._set_phases(_LAUNCHER, _failed())
            case "worker-evicted":
                await self._set_phases(_WORKER, {"phase": "Failed", "reason": "Evicted"}, most=1)
            case "suspended" | "resumed":
                await self._edit(runPolicy={"suspend": stage == "suspended"})
            case "scaled-up" | "scaled-down":
                await self._edit(mpiReplicaSpecs={"Worker": {"replicas": 3 if stage == "scaled-up" else 1}})
            case _:
                raise ValueError(f"no way is known to reach the stage {stage} of {self._case.name}")

    async def _edit(self, **spec: Any) -> None:
        await self._client.patch(MPIJOBS, Key(self.namespace, "job"), {"spec": spec})

    async def _set_phases(self, role: str, status: Mapping[str, Any], *, most: int | None = None) -> None:
        pods = sorted((each for each in self._pods if each["metadata"]["labels"][_ROLE] == role), key=lambda pod: pod["metadata"]["name"])
        for pod in pods[:most]:
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            if pod["status"]["phase"] in {status["phase"], "Failed", "Succeeded"}:
                continue
            body = {"metadata": {"resourceVersion": self._versions[uid]}, "status": status}
            written = await self._client.patch(PODS, Key(self.namespace, name), body, subresource="status")
            self._versions[uid] = written["metadata"].get("resourceVersion", "")


def namespace_of(case: str) -> str:
    """Return the namespace in which a case is lived; none is a part of another's name."""
    return f"{case}-golden"


def _failed() -> Mapping[str, Any]:
    ended = {"exitCode": 3, "reason": "Error", "startedAt": format_time(datetime.now(UTC)), "finishedAt": format_time(datetime.now(UTC))}
    state = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": ended}}
    return {"phase": "Failed", "containerStatuses": [state], "conditions": [{"type": "Ready", "status": "False"}]}
