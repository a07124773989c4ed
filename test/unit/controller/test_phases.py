"""What others do to a job and its children in each phase of its life: deleting, standing in the way, taking the namespace away."""

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import product

import pytest

from fakes.world import KEY, World, mpijob, new, running, starting
from mpiop.api import constants as c
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource


async def suspended() -> World:
    world = await running()
    await world.suspend()
    return world


async def resumed() -> World:
    world = await suspended()
    await world.edit({"spec": {"runPolicy": {"suspend": False}}})
    return world


async def ended(type_: str) -> World:
    world = await running()
    await world.end(type_)
    return world


Phase = Callable[[], Awaitable[World]]
PHASES: dict[str, Phase] = {
    "new": new,
    "starting": starting,
    "running": running,
    "suspended": suspended,
    "resumed": resumed,
    "succeeded": partial(ended, "Complete"),
    "failed": partial(ended, "Failed"),
}
in_each_phase = pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)


def quiet(world: World) -> None:
    """Forget what was written and reported so far."""
    world.client.actions.clear()
    world.recorder.reported.clear()


# The job is deleted


@in_each_phase
async def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector(phase: Phase) -> None:
    world = await phase()
    job = world.put_metadata(MPIJOBS, "pi", finalizers=["example.com/keep"])
    await world.client.delete(MPIJOBS, KEY, uid=uid_of(job))
    quiet(world)
    assert await world.sync() is None
    assert (world.writes, world.recorder.reported) == ([], [])


@in_each_phase
async def test_of_a_deleted_job_nothing_is_left_and_a_namesake_starts_afresh(phase: Phase) -> None:
    world = await phase()
    world.client.server.remove(MPIJOBS, KEY)
    world.client.server.collect_garbage()
    for job in world.client.server.objects(JOBS):
        world.client.server.remove(JOBS, Key("default", job["metadata"]["name"]))
    world.client.server.collect_garbage()
    await world.sync()
    assert [name for resource in (SERVICES, CONFIG_MAPS, SECRETS, JOBS, PODS) for name in world.names(resource)] == []
    await world.client.create(MPIJOBS, mpijob())
    quiet(world)
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    assert world.recorder.reasons == ["MPIJobCreated"]


# The namespace is deleted


@pytest.mark.parametrize("gone", [(PODS,), (JOBS, PODS), (CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES)], ids=len)
@in_each_phase
async def test_a_namespace_on_its_way_out_is_no_problem_of_the_job(phase: Phase, gone: Sequence[Resource]) -> None:
    world = await phase()
    world.client.server.terminate_namespace("default")
    for resource in gone:  # in which order is up to the namespace controller
        for obj in world.client.server.objects(resource):
            world.client.server.remove(resource, Key("default", obj["metadata"]["name"]))
    quiet(world)
    before = world.status
    with contextlib.suppress(ExceptionGroup, StatusError):  # what is refused is repeated with back-off
        await world.sync()
    for condition in (c.CONDITION_STALLED, c.CONDITION_FAILED, c.CONDITION_SUCCEEDED):
        assert world.status.is_true(condition) == before.is_true(condition)
    assert set(world.recorder.reasons) <= {"MPIJobCreated", "MPIJobResumed"}
    assert Counter(write for write in world.writes if write.startswith("create")).total() <= 3, "a namespace is not asked a thousand times"


# A child is deleted

CHILDREN: dict[str, tuple[Resource, str]] = {
    "Service": (SERVICES, "pi"),
    "ConfigMap": (CONFIG_MAPS, "pi-config"),
    "Worker": (PODS, "pi-worker-1"),
    "Launcher": (JOBS, "pi-launcher"),
    "Secret": (SECRETS, "pi-ssh"),
}
COMES_BACK = {
    "Service": {"running", "suspended", "resumed"},
    "ConfigMap": {"starting", "running", "suspended", "resumed"},
    "Worker": {"starting", "running"},
    "Launcher": {"suspended", "resumed"},
    "Secret": {"resumed"},
}
ENDS = {("Launcher", "starting"), ("Launcher", "running")}
DELETED = [
    (kind, name)
    for kind, name in product(CHILDREN, PHASES)
    if name != "new" and (kind, name) not in {("Service", "starting"), ("Worker", "suspended"), ("Worker", "resumed")}
]


@pytest.mark.parametrize(("kind", "name"), DELETED)
async def test_a_child_deleted_by_hand_comes_back_or_ends_the_job_or_is_not_needed_any_more(kind: str, name: str) -> None:
    world = await PHASES[name]()
    resource, child = CHILDREN[kind]
    if kind in {"Launcher", "Secret"} and "pi-launcher-x" in world.names(PODS):
        world.client.server.remove(PODS, Key("default", "pi-launcher-x"))
    world.client.server.remove(resource, Key("default", child))
    quiet(world)
    await world.sync_until_idle()
    assert (child in world.names(resource)) == (name in COMES_BACK[kind])
    if (kind, name) in ENDS:
        assert world.recorder.reasons == ["LauncherJobNotFound"]
    else:
        assert world.status.is_finished == (name in {"succeeded", "failed"})
        assert set(world.recorder.reasons) <= {"WorkerDeleted" if (kind, name) == ("Worker", "running") else "MPIJobResumed"}


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "Worker"])
async def test_a_child_that_comes_back_is_like_the_one_before(kind: str) -> None:
    world = await running()
    resource, child = CHILDREN[kind]
    before = world.one(resource, child)
    world.client.server.remove(resource, Key("default", child))
    await world.sync_until_idle()
    world.start_workers()
    await world.sync_until_idle()
    after = world.one(resource, child)
    assert uid_of(after) != uid_of(before)
    assert (after.get("spec"), after.get("data")) == (before.get("spec"), before.get("data"))


# Somebody else's object has a name that the job wants


@pytest.mark.parametrize("owner", [None, "another MPIJob"])
@pytest.mark.parametrize("kind", CHILDREN)
async def test_E57_E58_F60_an_object_in_the_way_is_not_touched_and_reported_once_and_then_the_job_continues(
    kind: str, owner: str | None
) -> None:
    world = await new()
    resource, name = CHILDREN[kind]
    owners = [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "another", "uid": "another", "controller": True}]
    foreign = {"metadata": {"name": name, "namespace": "default", "ownerReferences": owners if owner else []}, "spec": {}}
    before = world.client.server.put(resource, foreign)
    for _ in range(3):
        await world.sync_refused()
    assert world.one(resource, name) == before
    assert ("pi-worker-0" in world.names(PODS)) == (kind in {"Worker", "Launcher"}), "without its Service no worker would be found"
    message = f'Resource "{name}" of Kind "{resource.kind}" already exists and is not managed by MPIJob'
    assert [reported for reported in world.recorder.reported if reported[0] == "Warning"] == [("Warning", "ErrResourceExists", message)]
    stalled = world.condition(c.CONDITION_STALLED)
    assert (stalled.status, stalled.reason) == ("True", "ResourceExists")
    assert stalled.message == f"{message}. Delete or rename that object; the job continues within 60 s."
    world.client.server.remove(resource, Key("default", name))
    await world.sync_until_idle()
    assert not world.status.is_true(c.CONDITION_STALLED)
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]


async def test_a_pod_with_the_jobs_labels_but_another_owner_is_none_of_its_workers() -> None:
    world = await running()
    stranger = world.one(PODS, "pi-worker-0")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "other", "controller": True}
    metadata = {"name": "stranger", "namespace": "default", "labels": stranger["metadata"]["labels"], "ownerReferences": [owner]}
    world.client.server.put(PODS, {**stranger, "metadata": metadata})
    world.pod_status("stranger", "Failed", reason="Evicted")
    quiet(world)
    await world.sync_until_idle()
    assert (world.writes, world.recorder.reported) == ([], [])
    world.end_launcher()
    await world.change(runPolicy={"cleanPodPolicy": "All"})
    assert "stranger" in world.names(PODS)


# Workers end


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
async def test_a_worker_that_ends_is_kept_and_ends_nothing(end: str) -> None:
    world = await running()
    before = world.one(PODS, "pi-worker-1")
    world.pod_status("pi-worker-1", end)
    await world.sync_until_idle()
    assert uid_of(world.one(PODS, "pi-worker-1")) == uid_of(before)
    assert world.status.is_true(c.CONDITION_RUNNING), "once True it stays so until the end"
    assert not world.status.is_finished


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
async def test_a_launcher_that_waits_for_a_worker_that_has_ended_says_so(end: str) -> None:
    world = await starting(launcherCreationPolicy="WaitForWorkersReady")
    world.start_workers()
    world.pod_status("pi-worker-1", end)
    await world.sync_until_idle()
    stalled = world.condition(c.CONDITION_STALLED)
    assert stalled.reason == "WorkerEnded"
    assert "worker pi-worker-1 has ended" in stalled.message
    assert world.names(JOBS) == []
    world.client.server.remove(PODS, Key("default", "pi-worker-1"))
    await world.sync_until_idle()
    world.start_workers()
    await world.sync_until_idle()
    assert world.names(JOBS) == ["pi-launcher"]
    assert not world.status.is_true(c.CONDITION_STALLED)


# The launcher as a worker


@pytest.mark.parametrize("workers", [0, 2])
async def test_a_launcher_as_worker_is_the_first_host_with_workers_and_without(workers: int) -> None:
    world = await starting(workers=workers, runLauncherAsWorker=True, slotsPerWorker=2)
    await world.run_job()
    hosts = ["pi-launcher", *(f"pi-worker-{index}" for index in range(workers))]
    data = world.one(CONFIG_MAPS, "pi-config")["data"]
    assert data["hostfile"] == "".join(f"{host}.pi.default.svc slots=2\n" for host in hosts)
    assert data["discover_hosts.sh"] == "#!/bin/sh\n" + "".join(f"echo {host}.pi.default.svc\n" for host in hosts)
    assert world.status.is_true(c.CONDITION_RUNNING)
    assert (world.one(SERVICES, "pi")["spec"] or {})["publishNotReadyAddresses"] is True


@pytest.mark.parametrize("as_worker", [False, True])
@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
async def test_scaling_follows_in_pods_and_in_both_lists_of_hosts(policy: str, *, as_worker: bool) -> None:
    world = await new(workers=3, launcherCreationPolicy=policy, runLauncherAsWorker=as_worker)
    for desired in (3, 2, 1, 4):
        await world.change(mpiReplicaSpecs={"Worker": {"replicas": desired}})
        world.start_workers()
        await world.sync_until_idle()
        workers = [f"pi-worker-{index}" for index in range(desired)]
        hosts = [*(["pi-launcher"] if as_worker else []), *workers]
        data = world.one(CONFIG_MAPS, "pi-config")["data"]
        assert [name for name in world.names(PODS) if "-worker-" in name] == workers
        assert [line.partition(".")[0] for line in data["hostfile"].splitlines()] == hosts
        assert [line.partition(".")[0].removeprefix("echo ") for line in data["discover_hosts.sh"].splitlines()[1:]] == hosts
        assert world.names(JOBS) == ["pi-launcher"]


# Events


async def test_each_event_of_a_long_lifecycle_is_recorded_once_despite_many_syncs() -> None:
    world = await new()
    for step in (
        world.start_workers,
        world.start_launcher,
        lambda: world.pod_status("pi-worker-1", "Failed"),
        world.end_launcher,
    ):
        for _ in range(3):
            await world.sync()
        await world.sync_until_idle()
        step()
    for _ in range(3):
        await world.sync()
    await world.sync_until_idle()
    assert world.recorder.reasons == ["MPIJobCreated", "MPIJobRunning", "WorkerEnded", "MPIJobSucceeded"]
