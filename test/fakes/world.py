"""A job's world in memory: a fake API server, stores that follow it when asked to, and the syncer between them."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from example_children import launcher_pod
from example_jobs import MPIRUN, SSHD
from fakes.api_server import FakeClient
from fakes.mutations import MutationDetector
from fakes.semantics import projected
from mpiop.api import constants as c
from mpiop.api.status import parse_status
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.controller.batches import Batches
from mpiop.controller.executor import Executor
from mpiop.controller.gang.gang import Gang
from mpiop.controller.memory import JobMemory
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.ssh_secret import KeyPair
from mpiop.controller.observe.consistency import Consistency
from mpiop.controller.observe.deleted_launchers import LauncherJobs
from mpiop.controller.observe.deleted_workers import DeletedWorkers
from mpiop.controller.observe.job_reader import Reader
from mpiop.controller.observe.observed import BY_CONTROLLER, Listers, index_by_controller
from mpiop.controller.observe.projections import PROJECTIONS, trimmed, trims
from mpiop.controller.observe.stored_specs import Specs
from mpiop.controller.observer import Observer
from mpiop.controller.problems import Problems
from mpiop.controller.status.refusals import PersistentFailures
from mpiop.controller.sync import Syncer
from mpiop.controller.write.apply import Applier
from mpiop.controller.write.contention import Contention
from mpiop.controller.write.field_managers import field_manager
from mpiop.controller.write.launcher_logs import LauncherLogs
from mpiop.controller.write.report import Reporter
from mpiop.controller.write.ssh_secrets import SshSecrets
from mpiop.controller.write.warning_events import WAITING_SECONDS, WarningEvents
from mpiop.informers.store import Notification, Store
from mpiop.kube.objects import Key, Object, labels_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES, Resource
from mpiop.metrics import Metrics
from virtual_time import VirtualClock

KEY = Key("default", "pi")
LOST_WORKER_TIMEOUT_SECONDS = 60.0
WATCHED = (MPIJOBS, PODS, SERVICES, CONFIG_MAPS, JOBS)


def mpijob(name: str = "pi", *, namespace: str = "default", workers: int = 2, **spec: Any) -> Object:
    """Return an MPIJob as a user writes it."""
    replica_specs: dict[str, Any] = {"Launcher": {"template": MPIRUN}}
    if workers:
        replica_specs["Worker"] = {"replicas": workers, "template": SSHD}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"mpiReplicaSpecs": replica_specs, **spec},
    }


@dataclass
class Recorder:
    reported: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    uids: list[str] = field(default_factory=list[str])

    def record(self, obj: Object, type_: str, reason: str, message: str) -> None:
        assert uid_of(obj)
        self.reported.append((type_, reason, message))
        self.uids.append(uid_of(obj))

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.reported]


class World:
    """The API server is `client.server`; a sync sees it as of the last `refresh`."""

    def __init__(self, *, options: BuildOptions | None = None, client: FakeClient | None = None, lease: str = "mpi-operator") -> None:
        self.clock = VirtualClock()
        self.client = client or FakeClient(self.clock)
        self.recorder = Recorder()
        self.metrics = Metrics(version="test")
        self.keys_made = 0
        self.leads = True
        self.stores = {resource: Store({BY_CONTROLLER: index_by_controller}) for resource in WATCHED}
        self.mutations = defaultdict[Resource, MutationDetector](MutationDetector)
        self.trims = trims(Specs())
        self.memory = memory = JobMemory()
        consistency = Consistency(self.stores, self.clock, memory)
        us = field_manager("mpi-operator", lease)
        contention = Contention(self.clock, us, memory, self.metrics.count_damped_write)
        self.applier = Applier(self.client.fenced(self._fence, us), consistency, contention)
        self.launchers = LauncherJobs(self.stores[JOBS], self.stores[MPIJOBS])
        self.deleted = DeletedWorkers()
        self.listers = Listers(self.stores[SERVICES], self.stores[CONFIG_MAPS], self.launchers, self.stores[PODS], self.deleted)
        self.options = options or BuildOptions()
        self.logs = LauncherLogs(self.client, self.clock)
        self.contention = contention
        self.build(Gang())

    def build(self, gang: Gang) -> None:
        """Make a syncer, as a new process would."""
        memory, listers = self.memory, replace(self.listers, gang=gang.listers)
        self.batches = Batches(memory, self.applier.consistency)
        self.observer = Observer(listers, self.applier, self.batches, Reader(memory))
        secrets = SshSecrets(self.applier, self._new_key_pair, self.clock, memory.table())
        self.reporter = Reporter(self.applier, self.recorder, self.metrics, self.clock, memory.table())
        events, failures = WarningEvents(self.client, self.clock, memory), PersistentFailures(memory)
        self.syncer = Syncer(
            mpijobs=self.stores[MPIJOBS],
            memory=memory,
            observer=self.observer,
            executor=Executor(self.applier, secrets, self.options, gang),
            problems=Problems(self.contention, events, self.clock, failures),
            logs=self.logs,
            reporter=self.reporter,
            lost_worker_timeout_seconds=LOST_WORKER_TIMEOUT_SECONDS,
        )

    async def submit(self, **spec: Any) -> Object:
        """Create an MPIJob as a user."""
        created = await self.client.create(MPIJOBS, mpijob(**spec))
        self.client.actions.clear()
        return created

    async def edit(self, body: Mapping[str, Any]) -> None:
        """Change the MPIJob as a user."""
        await self.client.patch(MPIJOBS, KEY, body)
        self.client.actions.clear()

    async def change(self, **spec: Any) -> None:
        """Change the spec as a user, and sync until that is done."""
        await self.edit({"spec": spec})
        await self.sync_until_idle()

    async def suspend(self, **changes: Any) -> None:
        """Suspend the job as a user, with other changes of its spec, and sync until that is done."""
        await self.change(runPolicy={"suspend": True}, **changes)

    async def resume(self, **changes: Any) -> None:
        """Resume the job as a user, with other changes of its spec, and sync until that is done."""
        await self.change(runPolicy={"suspend": False}, **changes)

    async def sync(self, key: Key = KEY) -> float | None:
        """Refresh the caches, then sync: it changes no stored object, and its requests take turns with those of other jobs."""
        self.refresh()
        before = len(self.client.server.requests)
        try:
            return await self.syncer.sync(key)
        finally:
            for detector in self.mutations.values():
                detector.verify()
            assert {request.flow for request in self.client.server.requests[before:]} <= {key}

    async def sync_refused(self, error: type[Exception] = ExceptionGroup) -> None:
        """Refresh the caches, then sync: it fails with `error`, by default because a write of a child is refused."""
        with pytest.raises(error):
            await self.sync()

    async def sync_until_idle(self, *, rounds: int = 20) -> None:
        """Sync until nothing more is written; time passes where a write waits, but not until a waiting Pod is asked about."""
        for _ in range(rounds):
            before = len(self.client.actions)
            wait = await self.sync()
            if len(self.client.actions) == before and (wait is None or wait >= WAITING_SECONDS):
                return
            await asyncio.sleep(wait or 0)
        raise AssertionError(f"still writing after {rounds} rounds: {self.writes[-5:]}")

    def refresh(self, *resources: Resource) -> None:
        """Let the stores of `resources` (all by default) show the server as it is now."""
        for resource in resources or WATCHED:
            objects = [obj for obj in self.client.server.objects(resource) if resource is MPIJOBS or _has_our_label(obj)]
            trim = self.trims.get(resource, trimmed)
            kept = [trim(projected(obj, PROJECTIONS.get(resource))) for obj in objects]  # as the operator asks for them
            for change in self.stores[resource].replace(kept, str(self.client.server.storage.version)):
                self.heard(resource, change)

    def heard(self, resource: Resource, change: Notification) -> None:
        """Do what informers do besides keeping their stores."""
        self.mutations[resource].observe(change)
        if resource is PODS:
            self.deleted.pod_changed(change)
        if resource in {JOBS, MPIJOBS}:
            (self.launchers.job_changed if resource is JOBS else self.launchers.mpijob_changed)(change)

    def start_workers(self, phase: str = "Running", *, ready: bool = True) -> None:
        """Do what kubelets do."""
        for pod in self.client.server.objects(PODS):
            if "-worker-" in pod["metadata"]["name"]:
                self.pod_status(pod["metadata"]["name"], phase, ready=ready)

    def pod_status(self, name: str, phase: str, *, ready: bool = False, **status: Any) -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        if "-worker-" in name:
            status.setdefault("podIP", f"10.0.0.{int(name.rpartition('-')[2]) + 1}")
        self.client.server.put_status(PODS, Key("default", name), {"phase": phase, "conditions": conditions, **status})

    def start_launcher(self, phase: str = "Running") -> None:
        """Do what the Job controller and a kubelet do; a second call changes the phase."""
        job = self.one(JOBS, "pi-launcher")
        pod = launcher_pod(phase)
        metadata = {**pod["metadata"], "ownerReferences": [{**pod["metadata"]["ownerReferences"][0], "uid": uid_of(job)}]}
        spec = {**pod.get("spec", {}), "nodeName": "node"}
        self.client.server.put(PODS, {**pod, "metadata": metadata, "spec": spec})

    async def run_job(self) -> None:
        """Start workers and launcher, and let the job be reported to be running."""
        self.start_workers()
        await self.sync_until_idle()  # a launcher that is to wait for them may be made only now
        self.start_launcher()
        await self.sync_until_idle()
        assert self.status.is_true(c.CONDITION_RUNNING)

    def end_launcher(self, type_: str = "Complete", **status: Any) -> None:
        self.client.server.put_status(JOBS, Key("default", "pi-launcher"), {"conditions": [{"type": type_, "status": "True", **status}]})

    async def end(self, type_: str = "Complete", **status: Any) -> None:
        """Let the launcher Job end, and sync until that is reported."""
        self.end_launcher(type_, **status)
        await self.sync_until_idle()

    async def wait_on_timers(self, seconds: float) -> None:
        """Let time pass in which nothing else happens: the job is synced only when its last sync has asked for that."""
        while (wait := await self.sync()) is not None and wait <= seconds:
            await asyncio.sleep(wait)
            seconds -= wait
        await asyncio.sleep(seconds)

    def put_metadata(self, resource: Resource, name: str, **metadata: Any) -> Object:
        """Let somebody set metadata of an object; return it."""
        obj = self.one(resource, name)
        return self.client.server.put(resource, {**obj, "metadata": {**obj["metadata"], **metadata}})  # type: ignore[typeddict-item]

    def one(self, resource: Resource, name: str) -> Object:
        return next(obj for obj in self.client.server.objects(resource) if obj["metadata"]["name"] == name)

    def names(self, resource: Resource) -> list[str]:
        """Return the names of all objects of `resource`."""
        return [obj["metadata"]["name"] for obj in self.client.server.objects(resource)]

    @property
    def status(self) -> MPIJobStatus:
        return parse_status(self.one(MPIJOBS, "pi").get("status"))

    def condition(self, type_: str) -> Condition:
        found = self.status.condition(type_)
        assert found is not None, f"{type_} is missing"
        return found

    @property
    def writes(self) -> list[str]:
        """Return the writes tried so far, as `verb Kind ns/name`."""
        return [str(action) for action in self.client.actions]

    def _fence(self) -> None:
        if not self.leads:
            raise PermissionError("not the leader")

    async def _new_key_pair(self) -> KeyPair:
        self.keys_made += 1
        return KeyPair(f"private {self.keys_made}", f"public {self.keys_made}")


async def new(**spec: Any) -> World:
    """Return a world in which a job was submitted, and nothing done yet."""
    world = World()
    await world.submit(**spec)
    return world


async def starting(**spec: Any) -> World:
    """Return a world in which the job has its objects, and none of its Pods runs."""
    world = await new(**spec)
    await world.sync_until_idle()
    return world


async def running(**spec: Any) -> World:
    """Return a world in which the job runs, with no write and no event noted yet."""
    world = await starting(**spec)
    await world.run_job()
    world.client.actions.clear()
    world.recorder.reported.clear()
    return world


def _has_our_label(obj: Object) -> bool:
    """Return whether the operator's watches show `obj`."""
    return labels_of(obj).get(c.LABEL_OPERATOR_NAME) == c.OPERATOR_NAME
