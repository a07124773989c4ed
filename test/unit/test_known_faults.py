"""What is known to go wrong with the Go operator (release 0.8.2) and not here: a test a fault, numbered as in docs/compatibility.md."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fakes.api_server import FakeClient
from fakes.world import KEY, WATCHED, World, mpijob
from mpiop.api import constants as c
from mpiop.controller.gang.gang import Gang, candidates
from mpiop.controller.objects import BuildOptions
from mpiop.informers.store import Store
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, controller_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, LEASES, MPIJOBS, PODS, SECRETS, SERVICES, VOLCANO_POD_GROUPS, Resource
from mpiop.leaderelection import LeaseLostError
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock

STATUS = "patch MPIJob/status default/pi"
LAUNCHER = Key("default", "pi-launcher")


async def started(*, options: BuildOptions | None = None, workers: int = 2, **spec: object) -> World:
    """Return a world in which the job runs, nothing reported yet."""
    world = World(options=options)
    await world.submit(workers=workers, **spec)
    await world.sync_until_idle()
    await world.run_job()
    world.client.actions.clear()
    world.recorder.reported.clear()
    return world


async def suspend(world: World, *, suspended: bool) -> None:
    await world.edit({"spec": {"runPolicy": {"suspend": suspended}}})
    await world.sync_until_idle()


def workers(world: World) -> list[str]:
    return [name for name in world.names(PODS) if "-worker-" in name]


@asynccontextmanager
async def replica(client: FakeClient) -> AsyncIterator[tuple[Operator, asyncio.Task[None]]]:
    """Run one replica of the operator."""
    operator = Operator(Options(health_port=0), client, Metrics(version="test"), VirtualClock())
    task = asyncio.create_task(operator.run())
    try:
        yield operator, task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_fault_1_scaling_down_by_one_with_the_launcher_as_worker_deletes_one_worker() -> None:
    world = await started(workers=3, runLauncherAsWorker=True)
    await world.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    await world.sync_until_idle()
    assert workers(world) == ["pi-worker-0", "pi-worker-1"]
    assert [write for write in world.writes if write.startswith("delete")] == ["delete Pod default/pi-worker-2"]


async def test_fault_2_created_is_recorded_and_counted_once_however_often_a_sync_fails() -> None:
    world = World()
    await world.submit()
    world.client.refuse("create", CONFIG_MAPS, "", StatusError("test", {"code": 500}), times=5)
    for _ in range(5):
        with pytest.raises(ExceptionGroup):
            await world.sync()
    await world.sync_until_idle()
    assert world.recorder.reasons == ["MPIJobCreated"]
    assert world.metrics.registry.get_sample_value("mpi_operator_jobs_created_total") == 1


async def test_fault_3_running_is_recorded_once() -> None:
    world = World()
    await world.submit()
    await world.sync_until_idle()
    world.start_workers()
    world.start_launcher()
    for _ in range(5):
        await world.sync_until_idle()
    assert world.recorder.reasons.count("MPIJobRunning") == 1


async def test_fault_4_a_failed_create_reaches_the_status() -> None:
    world = World()
    await world.submit()
    world.client.refuse("create", PODS, "", StatusError("test", {"code": 403, "message": "exceeded quota: pods"}))
    await world.sync_refused()
    stalled = world.status.condition(c.CONDITION_RECONCILING)
    assert world.status.is_true(c.CONDITION_CREATED)
    assert stalled is not None
    assert stalled.message.startswith("worker pod created failed: exceeded quota: pods. ")


async def test_fault_5_an_invalid_job_has_a_condition_that_says_why() -> None:
    world = World()
    await world.submit(slotsPerWorker=-1)
    await world.sync()
    stalled = world.status.condition(c.CONDITION_STALLED)
    assert stalled is not None
    assert (stalled.reason, "spec.slotsPerWorker" in stalled.message) == ("ValidationError", True)


@pytest.mark.parametrize("scheduler", ["", "volcano"])
async def test_fault_6_nothing_in_a_cache_is_changed_in_place_neither_the_job_nor_its_pod_group(scheduler: str) -> None:
    world = World(options=BuildOptions(gang_scheduler=scheduler))
    world.client.server.served.add(VOLCANO_POD_GROUPS)
    groups = world.stores[VOLCANO_POD_GROUPS] = Store()
    if scheduler:
        gang = Gang(scheduler, candidates(scheduler)[0], {VOLCANO_POD_GROUPS: groups})
        world.build(gang)
    await world.submit(workers=2)
    resources: tuple[Resource, ...] = (*WATCHED, VOLCANO_POD_GROUPS)
    edits: list[dict[str, object]] = [
        {},
        {"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}, "slotsPerWorker": 2},
        {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}},
        {"runPolicy": {"suspend": True}},
        {"runPolicy": {"suspend": False}},
    ]
    for edit in edits:
        await world.edit({"spec": edit})
        for _ in range(3):
            world.refresh(*resources)
            cached: list[Object] = [obj for resource in resources for obj in world.stores[resource].values()]
            before = [json.dumps(obj, sort_keys=True, default=repr) for obj in cached]
            await world.syncer.sync(KEY)
            assert [json.dumps(obj, sort_keys=True, default=repr) for obj in cached] == before
            world.start_workers()
    assert world.names(VOLCANO_POD_GROUPS) == (["pi"] if scheduler else [])


async def test_fault_7_the_domain_of_the_cluster_is_what_the_flag_says() -> None:
    world = await started(options=BuildOptions(cluster_domain="example.org"))
    searches = world.one(PODS, "pi-worker-0")["spec"]["dnsConfig"]["searches"]
    assert searches == ["pi.default.svc.example.org"]
    everything = str([obj for resource in (SERVICES, CONFIG_MAPS, JOBS, PODS) for obj in world.client.server.objects(resource)])
    assert "cluster.local" not in everything
    assert "pi-worker-0.pi.default.svc.example.org slots=1" in everything


async def test_fault_8_the_caches_of_a_standby_are_warm_before_it_is_elected() -> None:
    client = FakeClient()
    await client.create(MPIJOBS, mpijob())
    async with replica(client):
        await asyncio.sleep(5)
        before = len(client.server.requests)
        async with replica(client):
            await asyncio.sleep(5)
            asked = {request.resource for request in client.server.requests[before:] if request.verb in {"list", "watch"}}
            assert {MPIJOBS, PODS, JOBS, SERVICES, CONFIG_MAPS} <= asked


async def test_fault_9_the_key_pair_of_a_job_is_made_once() -> None:
    world = await started()
    for _ in range(5):
        await world.sync_until_idle()
    await suspend(world, suspended=True)
    await suspend(world, suspended=False)
    assert world.keys_made == 1


async def test_fault_10_the_status_of_a_finished_job_is_written_once() -> None:
    world = await started()
    world.end_launcher()
    await world.sync_until_idle()
    assert world.writes.count(STATUS) == 1
    world.client.actions.clear()
    for _ in range(5):
        await world.sync_until_idle()
    assert world.writes == []


async def test_fault_11_an_evicted_worker_ends_the_job_for_good() -> None:
    world = await started(runPolicy={"cleanPodPolicy": "All"})
    world.pod_status("pi-worker-1", "Failed", reason="Evicted")
    await world.sync()
    assert world.status.completion_time is not None
    await world.sync_until_idle()
    assert workers(world) == []
    assert all("deletionTimestamp" in job["metadata"] for job in world.client.server.objects(JOBS)), "the launcher does not run on"
    world.end_launcher()
    await world.sync_until_idle()
    assert not world.status.is_true(c.CONDITION_SUCCEEDED), "and what it does on its way out changes nothing"


async def test_fault_12_clean_up_of_all_pods_deletes_an_active_launcher_and_keeps_a_finished_one() -> None:
    world = await started(runPolicy={"cleanPodPolicy": "All"})
    world.pod_status("pi-worker-1", "Failed", reason="Evicted")
    await world.sync_until_idle()
    assert "delete Job default/pi-launcher" in world.writes
    world = await started(runPolicy={"cleanPodPolicy": "All"})
    world.end_launcher()
    await world.sync_until_idle()
    assert "pi-launcher-x" in world.names(PODS)


async def test_fault_13_the_time_to_live_takes_all_children_and_leaves_the_job_and_its_status() -> None:
    world = await started(runPolicy={"ttlSecondsAfterFinished": 10})
    world.end_launcher()
    await world.sync()
    await asyncio.sleep(10)
    await world.sync_until_idle()
    assert [name for resource in (SERVICES, CONFIG_MAPS, SECRETS) for name in world.names(resource)] == workers(world) == []
    assert "deletionTimestamp" in world.one(JOBS, "pi-launcher")["metadata"]
    assert world.status.is_true(c.CONDITION_SUCCEEDED)


async def test_fault_14_a_launcher_that_vanished_before_its_end_was_recorded_is_not_run_a_second_time() -> None:
    world = World()
    job = await world.submit()
    counts = {"Launcher": {"active": 1}, "Worker": {"active": 2}}
    status = {
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Created", "status": "True", "reason": "MPIJobCreated", "message": "MPIJob default/pi is created."}],
        "replicaStatuses": counts,
    }
    world.client.server.put(MPIJOBS, {**job, "status": status})
    await world.sync_until_idle()
    failed = world.status.condition(c.CONDITION_FAILED)
    assert failed is not None
    assert (failed.status, failed.reason) == ("True", "LauncherJobNotFound")
    assert world.names(JOBS) == world.names(PODS) == []


async def test_fault_15_a_launcher_that_is_to_wait_for_its_workers_does_so_after_a_resume_too() -> None:
    world = await started(launcherCreationPolicy="WaitForWorkersReady")
    await suspend(world, suspended=True)
    await suspend(world, suspended=False)
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    world.start_workers()
    await world.sync_until_idle()
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is False


async def test_fault_16_a_suspend_takes_finished_workers_too_so_that_the_resume_does_not_fail_of_them() -> None:
    world = await started(runPolicy={"cleanPodPolicy": "Running"})
    world.pod_status("pi-worker-0", "Failed")
    await suspend(world, suspended=True)
    assert workers(world) == []
    await suspend(world, suspended=False)
    assert workers(world) == ["pi-worker-0", "pi-worker-1"]
    assert not world.status.is_finished


async def test_fault_17_the_resume_of_a_job_that_ran_clears_the_start_of_its_launcher_first() -> None:
    """The permission for it is in the ClusterRole (test_manifests.py)."""
    world = await started()
    await suspend(world, suspended=True)
    status = {"active": 0, "startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]}
    world.client.server.put_status(JOBS, LAUNCHER, status)
    template = {"spec": {"nodeSelector": {"zone": "a"}}}
    await world.edit({"spec": {"runPolicy": {"suspend": False}, "mpiReplicaSpecs": {"Launcher": {"template": template}}}})
    await world.sync_until_idle()
    writes = [write for write in world.writes if "Job" in write and "MPIJob" not in write]
    assert writes == ["patch Job/status default/pi-launcher", "patch Job default/pi-launcher"]
    assert world.one(JOBS, "pi-launcher")["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}


async def test_fault_18_a_pod_that_only_looks_like_a_worker_is_none() -> None:
    world = await started(runPolicy={"cleanPodPolicy": "All"})
    like = world.one(PODS, "pi-worker-0")
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "former", "controller": True}
    metadata = {"name": "stranger", "namespace": "default", "labels": like["metadata"]["labels"], "ownerReferences": [owner]}
    world.client.server.put(PODS, {**like, "metadata": metadata})
    world.pod_status("stranger", "Failed", reason="Evicted")
    await world.sync_until_idle()
    assert not world.status.is_finished
    world.end_launcher()
    await world.sync_until_idle()
    assert "stranger" in world.names(PODS)


async def test_fault_19_no_secret_is_listed_or_watched() -> None:
    client = FakeClient()
    client.server.put(SECRETS, {"metadata": {"name": "of-somebody", "namespace": "default"}})
    async with replica(client):
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(10)
        assert {request.verb for request in client.server.requests if request.resource is SECRETS} == {"create"}


@pytest.mark.parametrize("code", [401, 403])
async def test_fault_20_a_watch_that_is_refused_ends_nothing_and_is_tried_again(code: int) -> None:
    client = FakeClient()
    client.refuse("*", PODS, "", StatusError("watch pods", {"code": code, "message": "no"}), times=3)
    async with replica(client) as (_, task):
        await asyncio.sleep(120)
        assert not task.done()
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(10)
        assert client.server.storage.get(JOBS, LAUNCHER) is not None


async def test_fault_21_without_the_crd_it_waits_for_it() -> None:
    client = FakeClient()
    client.server.served.discard(MPIJOBS)
    async with replica(client) as (_, task):
        await asyncio.sleep(120)
        assert not task.done()
        client.server.served.add(MPIJOBS)
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(60)
        assert client.server.storage.get(JOBS, LAUNCHER) is not None


async def test_fault_22_an_object_in_the_way_is_named_with_its_kind() -> None:
    world = World()
    await world.submit()
    world.client.server.put(CONFIG_MAPS, {"metadata": {"name": "pi-config", "namespace": "default"}})
    await world.sync_refused()
    message = 'Resource "pi-config" of Kind "ConfigMap" already exists and is not managed by MPIJob'
    assert ("Warning", "ErrResourceExists", message) in world.recorder.reported


async def test_fault_23_a_stop_gives_the_lease_back_and_a_loss_leaves_it_to_whoever_has_it() -> None:
    client = FakeClient()

    def holder() -> str:
        [lease] = [obj for obj in client.server.objects(LEASES) if obj["metadata"]["name"] == "mpi-operator"]
        return str(lease["spec"].get("holderIdentity") or "")

    async with replica(client):
        await asyncio.sleep(5)
        assert holder()
    assert holder() == "", "the next one need not wait 15 s"
    async with replica(client) as (_, task):
        await asyncio.sleep(5)
        client.refuse("*", LEASES, "", TransportError("lost"))
        await asyncio.wait({task}, timeout=30)
        error = task.exception()
        assert isinstance(error, ExceptionGroup)
        assert error.subgroup(LeaseLostError) is not None, "said, and not a crash"


async def test_all_that_a_job_leaves_is_its_own_by_uid() -> None:
    """Faults 12, 13 and 18 delete; this is what they go by."""
    world = await started()
    uid = uid_of(world.one(MPIJOBS, "pi"))
    for resource in (SERVICES, CONFIG_MAPS, SECRETS, JOBS):
        for child in world.client.server.objects(resource):
            owner = controller_of(child)
            assert owner is not None
            assert owner["uid"] == uid
