"""One run: a namespace, a proxy, one or more replicas of the operator, and a kubelet that is played by the driver."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from faults.change_feed import wait_for_change
from faults.proxy import Plan, Proxy, fault_proxy
from faults.replica import Launch, Replica
from faults.state import BYSTANDER, JOB, State, objects, read_state, role
from faults.testbed import FaultTestbed, delete_namespace, make_namespace
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, is_terminating, uid_of
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS, PODS, SECRETS, Resource

ADDRESSES = {f"{JOB}-worker-{index}": f"10.0.0.{index + 1}" for index in range(2)}
OTHER_ADDRESS = "10.0.0.99"
LOOK_SECONDS = 0.1
MOST_LOOK_SECONDS = 1.0
"""Who waits is notified of changes, and polls less and less often without."""
# Whom no run may touch: they carry the operator's label and the job's names as far as others may.
_OURS = "training.kubeflow.org"
_LABELS = {f"{_OURS}/operator-name": "mpi-operator", f"{_OURS}/job-name": JOB, f"{_OURS}/job-role": "worker"}


class NotSeenError(AssertionError):
    """What a run waits for did not come."""


Action = Callable[["Run"], Awaitable[None]]
"""What is done to a run."""


@dataclass(eq=False)
class Run:
    """What a life and a fault may use.

    Attributes:
        testbed: What all runs share.
        namespace: The run's own.
        proxy: Between the operator and the API server.
        replicas: The operator's processes.
        launcher_ends: Phase that the launcher's pod ends with as soon as it is set.
        deadline: Loop time at which waiting ends.
        stages: What is done at a stage of its life; the life continues after it.
        findings: What the case found wrong on its way.
    """

    testbed: FaultTestbed
    namespace: str
    proxy: Proxy
    deadline: float
    replicas: list[Replica] = field(default_factory=list[Replica])
    launcher_ends: str = ""
    bystanders: list[Object] = field(default_factory=list[Object])
    stages: dict[str, Action] = field(default_factory=dict[str, Action])
    findings: list[str] = field(default_factory=list[str])

    async def reach(self, stage: str) -> None:
        """Do what is to be done at this stage of the life."""
        if action := self.stages.get(stage):
            await action(self)

    @property
    def key(self) -> Key:
        return Key(self.namespace, JOB)

    async def job(self) -> Object:
        """Return the MPIJob as it is now."""
        return await self.testbed.client.get(MPIJOBS, self.key)

    async def state(self) -> State:
        """Return what is in the namespace."""
        return await read_state(self.testbed.client, self.namespace)

    async def until(self, what: str, is_seen: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `is_seen`, whatever happens to single requests.

        Raises:
            NotSeenError: The run's time was over before.
        """
        loop, pause = asyncio.get_running_loop(), LOOK_SECONDS
        while True:
            change = self.testbed.change_feed.next_change(self.namespace)
            with contextlib.suppress(KubeError):
                if await is_seen():
                    return
            if loop.time() > self.deadline:
                raise NotSeenError(f"never seen: {what}")
            await wait_for_change(change, pause)
            pause = min(1.3 * pause, MOST_LOOK_SECONDS)

    async def until_object(self, resource: Resource, name: str, what: str, is_so: Callable[[Any], bool]) -> None:
        """Wait until an object of the namespace exists and is so; `what` is for the message.

        Raises:
            NotSeenError: The run's time is over.
        """

        async def is_seen() -> bool:
            found = await self.find(resource, name)
            return found is not None and is_so(found)

        await self.until(what, is_seen)

    async def find(self, resource: Resource, name: str) -> Any:
        """Return an object of the namespace; None if there is none."""
        try:
            return await self.testbed.client.get(resource, Key(self.namespace, name))
        except StatusError as error:
            if error.is_not_found:
                return None
            raise

    async def play_kubelet(self) -> None:
        """Let pods run, and the launcher end as requested, until cancelled."""
        while True:
            change = self.testbed.change_feed.next_change(self.namespace)
            with contextlib.suppress(KubeError):
                for pod in await objects(self.testbed.client, PODS, self.namespace, newest=False):
                    if not is_terminating(pod) and not pod["metadata"]["name"].startswith(BYSTANDER):
                        await self._play_pod(pod)
            await wait_for_change(change, MOST_LOOK_SECONDS)

    async def _play_pod(self, pod: Object) -> None:
        phase = pod.get("status", {}).get("phase")
        is_ended = phase in {"Succeeded", "Failed"}
        desired = self.launcher_ends if self.launcher_ends and role(pod) == "launcher" else "Running"
        if is_ended or phase == desired:
            return
        is_ready = "True" if desired == "Running" else "False"
        key = Key(self.namespace, pod["metadata"]["name"])
        address = ADDRESSES.get(key.name, OTHER_ADDRESS)
        ready = [{"type": "Ready", "status": is_ready}]
        status = {"phase": desired, "conditions": ready, "podIP": address, "podIPs": [{"ip": address}]}
        body = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self.testbed.client.patch(PODS, key, body, subresource="status")

    async def place_bystanders(self) -> None:
        """Make objects of others, which the run must leave as they are."""
        spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "nothing"}]}
        for resource, name, more in ((CONFIG_MAPS, "config", {}), (SECRETS, "config", {}), (PODS, "worker-0", {"spec": spec})):
            metadata = {"namespace": self.namespace, "name": f"{BYSTANDER}-{name}", "labels": _LABELS}
            body: Any = {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata, **more}
            self.bystanders.append(await self.testbed.client.create(resource, body))

    def end_launcher(self, phase: str) -> None:
        """Let the launcher's pod end so as soon as there is one."""
        self.launcher_ends = phase
        self.testbed.change_feed.notify(self.namespace)

    def launch(self, name: str = "operator", **changes: Any) -> Replica:
        """Return one more replica, not yet started."""
        launch = Launch(
            server=self.proxy.url,
            authority=self.testbed.authority,
            token=self.testbed.token,
            namespace=self.namespace,
            folder=self.testbed.folder / self.namespace,
            lease_seconds=self.testbed.lease_seconds,
            fork_server=self.testbed.fork_server,
            **changes,
        )
        self.replicas.append(replica := Replica(launch, name))
        return replica


@contextlib.asynccontextmanager
async def new_run(testbed: FaultTestbed, namespace: str, plan: Plan, seconds: float) -> AsyncIterator[Run]:
    """Yield a run of at most `seconds` with nothing started but the proxy and the kubelet; all of it is gone afterwards."""
    await make_namespace(testbed.client, namespace)
    async with fault_proxy(testbed.upstream, plan, testbed.context) as proxy:
        run = Run(testbed, namespace, proxy, asyncio.get_running_loop().time() + seconds)
        await run.place_bystanders()
        kubelet = asyncio.create_task(run.play_kubelet())
        try:
            yield run
        finally:
            kubelet.cancel()
            await asyncio.wait({kubelet})
            for replica in run.replicas:
                await replica.stop()
            with contextlib.suppress(KubeError):
                await delete_namespace(testbed.client, namespace)
