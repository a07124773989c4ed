"""One job's life as the API server sees it: what is written, when, and how often."""

import asyncio
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from fakes.mutations import MutationError
from fakes.world import KEY, World, mpijob, new, running, starting
from mpiop.api import constants as c
from mpiop.api.status_types import Failure, ReplicaStatus
from mpiop.controller.names import ANNOTATION_ADDRESSES, ANNOTATION_SECRET_UID
from mpiop.controller.objects import BuildOptions
from mpiop.controller.status.reconciling import current_problem
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, labels_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource
from mpiop.workqueue import NotReady

STATUS = "patch MPIJob/status default/pi"
CHILDREN = [
    "create Secret default/pi-ssh",
    "create Service default/pi",
    "create ConfigMap default/pi-config",
    "create Pod default/pi-worker-0",
    "create Pod default/pi-worker-1",
    "create Job default/pi-launcher",
]


FAILED = {"name": "launcher", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
CAUSE = "pod pi-launcher-x on node node container launcher exit code 3"


def refusal(code: int, message: str = "no", **status: Any) -> StatusError:
    return StatusError("test", {"code": code, "message": message, **status})


async def test_I38_no_sync_of_a_life_changes_a_stored_object() -> None:
    world = await running()
    world.pod_status("pi-worker-0", "Failed")
    await world.sync_until_idle()
    await world.end()
    assert world.status.is_true(c.CONDITION_SUCCEEDED)
    stored = world.stores[JOBS].get(Key("default", "pi-launcher"))
    assert stored is not None
    stored["spec"] = {"changed": "in place"}
    with pytest.raises(MutationError, match="pi-launcher"):  # whether each of these syncs was checked
        await world.sync()


UNSEEN = {"metadata": {"generation": 2}, "spec": {"runPolicy": {"cleanPodPolicy": "All"}}}


@pytest.mark.parametrize("edit", [{}, UNSEEN], ids=["not edited", "edited, and users see no difference"])
async def test_a_job_that_is_up_to_date_costs_no_write(edit: dict[str, Any]) -> None:
    world = await running()
    await world.edit(edit)
    await world.sync_until_idle()
    assert world.writes == []


async def test_a_whole_life_in_the_fewest_writes() -> None:
    world = await new(runPolicy={"cleanPodPolicy": "All"})
    await world.sync()
    assert world.status.replica_statuses == {c.LAUNCHER: ReplicaStatus(), c.WORKER: ReplicaStatus()}
    world.start_workers()
    world.start_launcher()
    await world.sync_until_idle()
    await world.end()
    assert world.writes == [
        *CHILDREN,
        STATUS,
        "patch ConfigMap default/pi-config",
        "patch Pod default/pi-launcher-x",
        STATUS,
        "patch Pod default/pi-launcher-x",  # two seconds later, for a kubelet that may have missed it
        STATUS,
        "delete Pod default/pi-worker-0",
        "delete Pod default/pi-worker-1",
    ]
    assert world.recorder.reasons == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
    assert labels_of(world.one(SECRETS, "pi-ssh"))[c.LABEL_OPERATOR_NAME] == c.OPERATOR_NAME  # caches show no other child without it
    totals = [world.metrics.registry.get_sample_value(f"mpi_operator_jobs_{end}_total") for end in ("created", "successful", "failed")]
    assert totals == [1, 1, 0]


async def waiting() -> World:
    """Return a world where the launcher runs, and one of its workers is not Ready."""
    world = await starting()
    world.start_launcher()
    world.start_workers()
    world.pod_status("pi-worker-1", "Pending")
    await world.sync_until_idle()
    assert reported(world) == ""
    return world


def reported(world: World) -> str:
    return str(world.one(PODS, "pi-launcher-x")["metadata"]["annotations"][ANNOTATION_ADDRESSES]).removeprefix("workers 2\n")


async def test_all_addresses_are_published_when_all_workers_are_ready() -> None:
    world = await waiting()
    assert "patch Pod default/pi-launcher-x" not in world.writes
    world.start_workers()
    await world.sync_until_idle()
    assert reported(world) == "0 10.0.0.1\n1 10.0.0.2\n"
    await world.sync_until_idle()
    assert world.writes.count("patch Pod default/pi-launcher-x") == 2
    await world.sync_until_idle()
    assert world.writes.count("patch Pod default/pi-launcher-x") == 2


async def test_the_line_of_a_lost_worker_is_removed_and_that_of_its_successor_added() -> None:
    world = await waiting()
    world.start_workers()
    await world.sync_until_idle()
    world.client.server.remove(PODS, Key("default", "pi-worker-0"))
    await world.sync_until_idle()
    assert reported(world) == "1 10.0.0.2\n"
    world.pod_status("pi-worker-0", "Running", ready=True, podIP="10.0.0.9")
    await world.sync_until_idle()
    assert reported(world) == "0 10.0.0.9\n1 10.0.0.2\n"


async def test_addresses_are_published_though_other_writes_are_refused() -> None:
    world = await waiting()
    world.client.refuse("patch", CONFIG_MAPS, "", refusal(422, "may not be more than 1048576 bytes"), times=100)
    world.start_workers()
    await world.sync_refused()
    assert reported(world) == "0 10.0.0.1\n1 10.0.0.2\n"


async def test_a_deleted_worker_comes_back_and_a_finished_one_does_not() -> None:
    world = await running()
    world.client.server.remove(PODS, Key("default", "pi-worker-0"))
    world.pod_status("pi-worker-1", "Failed")
    await world.sync_until_idle()
    assert "create Pod default/pi-worker-0" in world.writes
    assert not any("pi-worker-1" in write for write in world.writes)


async def test_a_failing_launcher_fails_the_job() -> None:
    world = await running()
    await world.end("Failed", reason="DeadlineExceeded", message="too late")
    assert world.recorder.reported == [("Warning", "DeadlineExceeded", "too late")]
    assert world.metrics.registry.get_sample_value("mpiop_job_failures_total", {"reason": "DeadlineExceeded"}) == 1


async def test_an_evicted_worker_ends_the_job_and_its_launcher() -> None:
    world = await running()
    world.pod_status("pi-worker-1", "Failed", reason="Evicted")
    await world.sync_until_idle()
    assert world.recorder.reported == [("Warning", "MPIJobEvicted", "1/2 workers are evicted")]
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    assert world.status.completion_time is not None


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", ""])
async def test_a_job_of_another_manager_is_left_alone(manager: str) -> None:
    world = await new(runPolicy={"managedBy": manager})
    await world.sync()
    assert world.writes == []


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [("slotsPerWorker", -1, 1), ("mpiImplementation", {"not": "a string"}, "OpenMPI")],
    ids=["out of range", "of another type"],
)
async def test_an_invalid_job_says_so_once_and_can_be_repaired(field: str, wrong: object, right: object) -> None:
    world = await new(**{field: wrong})
    await world.sync()
    await world.sync()
    assert world.writes == [STATUS]
    stalled = world.condition(c.CONDITION_STALLED)
    assert stalled.reason == "ValidationError"
    assert stalled.message.startswith(f"Found validation errors: spec.{field}: ")
    assert world.recorder.reasons == ["ValidationError"]
    assert not world.status.is_true(c.CONDITION_CREATED)
    await world.edit({"spec": {field: right}})
    await world.sync()
    assert world.writes == [*CHILDREN, STATUS]


async def test_E58_a_child_of_a_deleted_namesake_is_waited_for() -> None:
    world = await new()
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "former", "controller": True}
    world.client.server.put(SERVICES, {"metadata": {"name": "pi", "namespace": "default", "ownerReferences": [owner]}})
    await world.sync_refused()
    assert world.recorder.reasons == ["MPIJobCreated"]


async def test_children_without_our_label_are_found_by_name_and_labelled() -> None:
    world = await starting()
    world.start_workers()
    await world.sync_until_idle()
    children = {SERVICES: "pi", CONFIG_MAPS: "pi-config", JOBS: "pi-launcher", SECRETS: "pi-ssh"}
    for resource, name in children.items():
        world.put_metadata(resource, name, labels={"app": "pi"}, annotations={})
    uids = [uid_of(obj) for resource in children for obj in world.client.server.objects(resource)]
    world.refresh()
    for resource in (SERVICES, CONFIG_MAPS, JOBS):
        world.stores[resource].replace((), "999999")
    await world.syncer.sync(KEY)
    found = [obj for resource in children for obj in world.client.server.objects(resource)]
    assert [uid_of(obj) for obj in found] == uids
    assert [c.LABEL_OPERATOR_NAME in labels_of(obj) for obj in found] == [True, True, True, False], "there is no right to change a Secret"
    world.stores[CONFIG_MAPS].replace((), "")
    await world.sync_until_idle()
    assert world.one(CONFIG_MAPS, "pi-config")["metadata"]["annotations"][ANNOTATION_SECRET_UID] == uid_of(world.one(SECRETS, "pi-ssh"))


async def test_E56_a_quota_is_asked_few_times_and_the_job_says_why_it_waits() -> None:
    world = await new(workers=100)
    world.client.refuse("create", PODS, "", refusal(403, "exceeded quota: pods"))
    await world.sync_refused()
    assert sum("create Pod" in write for write in world.writes) <= 2
    assert world.recorder.reported[-1] == ("Warning", "QuotaExceeded", "worker pod created failed: exceeded quota: pods")
    assert current_problem(world.status) is not None
    world.client.server.allow()
    await world.sync_until_idle()
    assert len(world.names(PODS)) == 100
    assert current_problem(world.status) is None


@pytest.mark.parametrize("resource", [SECRETS, SERVICES, CONFIG_MAPS, JOBS, PODS], ids=lambda resource: resource.kind)
@pytest.mark.parametrize(
    "error", [refusal(500), refusal(409, reason="Conflict"), TransportError("no connection")], ids=["500", "conflict", "lost"]
)
@pytest.mark.parametrize("takes_effect", [False, True], ids=["not done", "done unseen"])
async def test_a_failed_write_is_repeated_and_nothing_is_made_twice(resource: Resource, error: KubeError, *, takes_effect: bool) -> None:
    world = await new()
    world.client.server.refuse("create", resource, "", error, times=1, takes_effect=takes_effect)
    await world.sync_refused()
    assert world.status.is_true(c.CONDITION_CREATED), "the status is written on the error path too"
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    assert len(world.names(SECRETS)) == len(world.names(JOBS)) == len(world.names(SERVICES)) == 1
    assert world.recorder.reasons == ["MPIJobCreated"]


async def test_an_event_is_recorded_once_though_the_status_was_refused_at_first() -> None:
    world = await new()
    world.client.refuse("patch", MPIJOBS, "pi", refusal(500), times=2)
    for _ in range(2):
        await world.sync_refused(StatusError)
        assert world.recorder.reported == []
    await world.sync_until_idle()
    assert world.recorder.reasons == ["MPIJobCreated"]
    assert world.metrics.registry.get_sample_value("mpi_operator_jobs_created_total") == 1


async def test_counts_and_hosts_follow_every_worker() -> None:
    world = await starting(workers=3)
    world.client.actions.clear()
    for number in range(2):
        world.pod_status(f"pi-worker-{number}", "Running", ready=True)
        await world.sync()
    assert world.writes == ["patch ConfigMap default/pi-config", STATUS] * 2
    assert world.status.summary.workers == "2/3"
    assert world.one(CONFIG_MAPS, "pi-config")["data"]["discover_hosts.sh"].count("echo") == 2


@pytest.mark.parametrize("template", [{}, {"spec": None}, "none"], ids=str)
async def test_created_is_recorded_though_its_update_got_no_answer_and_an_edit_made_the_job_invalid(template: object) -> None:
    world = await new()
    world.client.server.refuse("patch", MPIJOBS, "pi", refusal(500), times=1, takes_effect=True)
    await world.sync_refused(StatusError)
    stored = world.one(MPIJOBS, "pi")
    stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template
    world.client.server.put(MPIJOBS, stored)
    await world.sync()
    assert world.recorder.reasons == ["MPIJobCreated", "ValidationError"]


async def test_the_cause_of_a_failure_outlives_its_pod() -> None:
    world = await running()
    world.pod_status("pi-launcher-x", "Running", containerStatuses=[FAILED])
    await world.sync_until_idle()
    assert world.writes == [STATUS], "the launcher Job is left alone: others hold its version"
    assert world.status.last_failure == Failure("Error", CAUSE)
    world.client.server.remove(PODS, Key("default", "pi-launcher-x"))
    await world.end("Failed", reason="BackoffLimitExceeded", message="too often")
    assert world.recorder.reported[-1] == ("Warning", "BackoffLimitExceeded/Error", f"too often: {CAUSE}")


async def test_a_cause_that_is_seen_after_the_failure_is_added_without_another_event() -> None:
    world = await running()
    await world.end("Failed", reason="BackoffLimitExceeded", message="too often")
    reported = world.condition("Failed")
    await asyncio.sleep(5)
    world.pod_status("pi-launcher-x", "Failed", containerStatuses=[FAILED])
    await world.sync_until_idle()
    failed = world.condition("Failed")
    assert (reported.reason, failed.reason) == ("BackoffLimitExceeded", "BackoffLimitExceeded/Error")
    assert failed.message == f"too often: {CAUSE}"
    assert failed.last_transition_time == reported.last_transition_time
    assert world.recorder.reasons == ["BackoffLimitExceeded"]
    assert world.metrics.jobs_failed._value.get() == 1


@pytest.mark.parametrize("taken", [False, True], ids=["gone", "another took its name"])
async def test_a_launcher_that_is_gone_unseen_is_not_run_again(*, taken: bool) -> None:
    world = await running()
    world.client.server.remove(JOBS, Key("default", "pi-launcher"))
    if taken:
        world.client.server.put(JOBS, {"metadata": {"name": "pi-launcher", "namespace": "default"}})
    await world.sync_until_idle()
    assert world.writes == [STATUS]
    assert world.recorder.reasons == ["LauncherJobNotFound"]


async def test_how_a_launcher_without_our_label_ended_is_recorded_by_the_first_sync() -> None:
    world = await running()
    world.end_launcher("Complete")
    world.put_metadata(JOBS, "pi-launcher", labels={})
    world.refresh()
    world.stores[JOBS].replace((), "999999")  # which shows what has the label
    await world.syncer.sync(KEY)
    assert labels_of(world.one(JOBS, "pi-launcher"))[c.LABEL_OPERATOR_NAME] == c.OPERATOR_NAME
    assert world.status.is_true("Succeeded")


async def test_a_launcher_that_cannot_be_read_is_not_given_up() -> None:
    world = await running()
    world.client.server.remove(JOBS, Key("default", "pi-launcher"))
    world.client.refuse("get", JOBS, "pi-launcher", refusal(500), times=1)
    await world.sync_refused(StatusError)
    assert world.writes == []


@pytest.mark.parametrize("refused", [("patch", CONFIG_MAPS), ("create", SECRETS)], ids=["hostfile", "secret"])
async def test_a_suspend_is_carried_out_though_another_write_is_refused(refused: tuple[str, Any]) -> None:
    world = await running()
    if refused[1] is SECRETS:
        world.client.server.remove(CONFIG_MAPS, Key("default", "pi-config"))
    await world.edit({"spec": {"runPolicy": {"suspend": True}}})
    world.client.refuse(*refused, "", refusal(403, "denied"))
    await world.sync()
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    await asyncio.sleep(1)
    world.pod_status("pi-launcher-x", "Failed")
    with suppress(ExceptionGroup):
        await world.sync()
    assert world.names(PODS) == ["pi-launcher-x"]


async def test_a_write_that_could_not_be_tried_does_not_end_a_stall() -> None:
    world = await new()
    world.client.refuse("create", PODS, "", refusal(403, "exceeded quota: pods"), times=1)
    await world.sync_refused()
    world.client.refuse("create", PODS, "", TransportError("lost"), times=1)
    await world.sync_refused()
    assert current_problem(world.status) is not None
    assert world.recorder.reasons == ["MPIJobCreated", "QuotaExceeded"]


@pytest.mark.parametrize("takes_effect", [False, True], ids=["not done", "done unseen"])
async def test_an_event_is_recorded_once_though_storing_its_status_got_no_answer(*, takes_effect: bool) -> None:
    world = await new()
    world.client.refuse("patch", MPIJOBS, "pi", TransportError("lost"), times=1, takes_effect=takes_effect)
    await world.sync_refused(TransportError)
    assert world.recorder.reported == []
    world.refresh(PODS, SERVICES, CONFIG_MAPS, JOBS)
    with pytest.raises(StatusError) if takes_effect else nullcontext():
        await world.syncer.sync(KEY)  # the cache of jobs does not show it yet
    await asyncio.sleep(2)
    await world.sync_until_idle()
    assert world.recorder.reasons == ["MPIJobCreated"]


async def test_transitions_of_an_unanswered_update_are_not_recorded_for_a_status_that_another_stored() -> None:
    world = await new()
    world.client.refuse("patch", MPIJOBS, "pi", TransportError("lost"), times=1)
    await world.sync_refused(TransportError)
    created = {"type": "Created", "status": "True", "reason": "MPIJobCreated", "message": "by another leader"}
    world.client.server.put_status(MPIJOBS, KEY, {"conditions": [created]})
    await world.sync_until_idle()
    assert world.recorder.reported == []


async def test_what_others_add_to_the_owners_of_a_child_stays() -> None:
    world = await running()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"}
    world.put_metadata(SERVICES, "pi", ownerReferences=[*(world.one(SERVICES, "pi")["metadata"].get("ownerReferences") or ()), other])
    await world.sync_until_idle()
    assert world.writes == []


async def test_a_finished_launcher_is_not_touched_again() -> None:
    world = await running()
    await world.suspend()
    await world.end()
    world.client.actions.clear()
    await world.sync()
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    assert world.writes == []


async def test_without_the_lease_nothing_is_written() -> None:
    world = await new()
    world.leads = False
    await world.sync_refused(PermissionError)
    assert world.writes == []


@pytest.mark.parametrize(("given", "reported"), [("Always", ["SetPodTemplateRestartPolicy"]), ("", []), (None, [])])
async def test_templates_with_a_restart_policy_are_warned_of(given: str | None, reported: list[str]) -> None:
    world = World()
    job = mpijob()
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    worker["template"] = {"spec": {**worker["template"]["spec"], "restartPolicy": given}}
    await world.client.create(MPIJOBS, job)
    await world.sync()
    assert world.recorder.reasons == ["MPIJobCreated", *reported]


async def test_a_sync_that_the_caches_are_too_old_for_is_put_off() -> None:
    world = await running()
    written: Any = {"metadata": {"resourceVersion": "1000000"}}
    world.applier.consistency.wrote(KEY, uid_of(world.client.server.objects(MPIJOBS)[0]), PODS, written)
    with pytest.raises(NotReady):
        await world.syncer.sync(KEY)
    assert world.batches.is_postponed(KEY)
    world.stores[PODS].replace(world.stores[PODS].values(), "1000000")
    await world.syncer.sync(KEY)
    assert not world.batches.is_postponed(KEY)


async def test_no_worker_is_deleted_while_the_suspension_of_its_launcher_is_refused() -> None:
    world = await running()
    await world.edit({"spec": {"runPolicy": {"suspend": True}}})
    world.client.refuse("patch", JOBS, "", refusal(409, reason="Conflict"), times=1)
    await world.sync_refused()
    assert len(world.names(PODS)) == 3, "its mpirun would fail, and the launcher be tried again"
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-launcher-x"]


async def test_a_suspension_that_was_taken_back_before_a_restart_stops_nothing() -> None:
    world = await running()
    await world.edit({"spec": {"runPolicy": {"suspend": True}}})
    world.refresh()
    await world.edit({"spec": {"runPolicy": {"suspend": False}}})
    with pytest.raises(NotReady):
        await world.syncer.sync(KEY)  # by a cache that is behind
    assert world.writes == []
    await world.sync_until_idle()
    assert world.writes == []


async def test_no_launcher_is_unsuspended_while_a_worker_cannot_be_made() -> None:
    world = await running()
    await world.suspend()
    await world.edit({"spec": {"runPolicy": {"suspend": False}}})
    world.client.refuse("create", PODS, "", refusal(403, "exceeded quota: pods"), times=1)
    await world.sync_refused()
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    await world.sync_until_idle()
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is False


async def test_a_server_that_fails_for_long_is_quoted_until_it_does_not() -> None:
    world = await new()
    world.client.refuse("create", PODS, "", StatusError("create", {"code": 500, "message": "failed calling webhook: no endpoints"}))
    for _ in range(2):
        await world.sync_refused()
        assert current_problem(world.status) is None
        await asyncio.sleep(2)
    await world.sync_refused()
    stalled = world.condition("Reconciling")
    assert (stalled.status, stalled.reason) == ("True", "WriteFailed")
    assert ("Warning", "WriteFailed", "worker pod created failed: failed calling webhook: no endpoints") in world.recorder.reported
    world.client.server.allow()
    await world.sync_until_idle()
    assert current_problem(world.status) is None


async def test_of_updates_without_an_answer_only_the_last_are_remembered() -> None:
    world = await new()
    world.client.refuse("patch", MPIJOBS, "", refusal(500, "failed calling webhook"), times=100)
    for _ in range(100):
        await world.sync_refused(StatusError)
        await asyncio.sleep(60)
    assert len(world.syncer.reporter.unanswered[KEY]) == 20


async def test_the_domain_of_the_cluster_is_what_the_flag_says() -> None:
    world = World(options=BuildOptions(cluster_domain="example.org"))
    await world.submit()
    await world.sync_until_idle()
    searches = world.one(PODS, "pi-worker-0")["spec"]["dnsConfig"]["searches"]
    assert searches == ["pi.default.svc.example.org"]
    everything = str([obj for resource in (SERVICES, CONFIG_MAPS, JOBS, PODS) for obj in world.client.server.objects(resource)])
    assert "cluster.local" not in everything
    assert "pi-worker-0.pi.default.svc.example.org slots=1" in everything
