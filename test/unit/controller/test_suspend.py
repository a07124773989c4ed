"""Suspending and resuming, edits in between included, as the API server sees it (KEP-2926)."""

import copy
from typing import Any

import pytest

from example_jobs import MPIRUN, SSHD
from fakes.world import World, new, starting
from mpiop.api import constants as c
from mpiop.controller import names
from mpiop.controller.status.reconciling import current_problem
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, annotations_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES

LAUNCHER = Key("default", "pi-launcher")
STARTED = "2026-01-01T00:00:00Z"
UNSUSPEND = "patch Job default/pi-launcher"
SUSPEND, RESUME = ({"runPolicy": {"suspend": value}} for value in (True, False))


async def started(world: World | None = None, **spec: Any) -> World:
    """Return a world in which the job runs, its launcher Job too."""
    world = world or World()
    await world.submit(**spec)
    await world.sync_until_idle()
    await world.run_job()
    job_status(world, active=1, startTime=STARTED)
    await world.sync_until_idle()
    world.recorder.reported.clear()
    return world


async def suspended(*, start_time: str | None = None, **spec: Any) -> World:
    """Return a world in which a job that ran is suspended, and none of its pods is left."""
    world = await started(**spec)
    await world.suspend()
    carry_out(world, startTime=start_time)
    await world.sync_until_idle()
    assert world.names(PODS) == []
    world.client.actions.clear()
    world.recorder.reported.clear()
    return world


def job_status(world: World, **status: Any) -> None:
    world.client.server.put_status(JOBS, LAUNCHER, status)


def carry_out(world: World, **status: Any) -> None:
    """Do what the Job controller does with a suspended Job: from Kubernetes 1.36 it clears startTime too."""
    if "pi-launcher-x" in world.names(PODS):
        world.client.server.remove(PODS, Key("default", "pi-launcher-x"))
    job_status(world, active=0, conditions=[{"type": "Suspended", "status": "True"}], **status)


def launcher_template(**spec: Any) -> dict[str, Any]:
    """Return the part of an edit that gives the launcher's template `spec`."""
    return {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {**MPIRUN["spec"], **spec}}}}}


def launcher(world: World) -> Object:
    return world.one(JOBS, "pi-launcher")


async def test_a_job_created_suspended_has_all_but_its_pods_and_no_start() -> None:
    world = await starting(runPolicy={"suspend": True})
    children = [name for resource in (SERVICES, CONFIG_MAPS, SECRETS, JOBS, PODS) for name in world.names(resource)]
    assert children == ["pi", "pi-config", "pi-ssh", "pi-launcher"]
    assert launcher(world)["spec"]["suspend"] is True
    assert world.status.start_time is None
    assert world.recorder.reasons == ["MPIJobCreated", "MPIJobSuspended"]
    assert not world.status.is_true(c.CONDITION_RUNNING)


async def test_suspended_is_set_at_once_and_the_counts_show_when_no_pod_is_left() -> None:
    world = await started()
    await world.edit({"spec": SUSPEND})
    await world.sync()
    assert world.status.is_true(c.CONDITION_SUSPENDED)
    assert not world.status.is_true(c.CONDITION_RUNNING)
    assert world.status.replica_statuses["Launcher"].active == 1, "Kueue gives the quota away when it is 0"
    await world.sync_until_idle()
    carry_out(world)
    await world.sync_until_idle()
    assert [counts.active for counts in world.status.replica_statuses.values()] == [0, 0]


async def test_a_launcher_that_still_runs_is_not_let_go_again() -> None:
    world = await started()
    await world.suspend()
    await world.resume()
    assert launcher(world)["spec"]["suspend"] is True, "its pod would run on with workers that are gone"
    carry_out(world)
    await world.sync_until_idle()
    assert launcher(world)["spec"]["suspend"] is False


@pytest.mark.parametrize("clears", [True, False], ids=["1.36", "1.35"])
async def test_the_launcher_follows_the_directives_of_scheduling_before_it_is_let_go(*, clears: bool) -> None:
    world = await suspended(start_time=None if clears else STARTED)
    uid = uid_of(launcher(world))
    await world.resume(**launcher_template(nodeSelector={"zone": "a"}, tolerations=[{"operator": "Exists"}]))
    status_first = [] if clears else ["patch Job/status default/pi-launcher"]
    assert [write for write in world.writes if "Job" in write and "MPI" not in write] == [*status_first, UNSUSPEND]
    spec = launcher(world)["spec"]
    assert (uid_of(launcher(world)), spec["suspend"]) == (uid, False)
    assert spec["template"]["spec"]["nodeSelector"] == {"zone": "a"}
    assert spec["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert not world.status.is_true(c.CONDITION_UPDATE_PENDING)


async def test_suspending_and_restoring_templates_in_one_edit_is_for_the_next_start() -> None:
    """Kueue does so when it takes a job's quota away."""
    world = await started()
    await world.suspend(**launcher_template(nodeSelector={"zone": "a"}))
    carry_out(world, startTime=None)
    await world.sync_until_idle()
    assert "nodeSelector" not in launcher(world)["spec"]["template"]["spec"]
    await world.resume(**launcher_template(nodeSelector={"zone": "b"}))
    assert launcher(world)["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "b"}


async def test_workers_are_made_from_the_template_as_it_is_then() -> None:
    world = await suspended()
    await world.resume(mpiReplicaSpecs={"Worker": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}})
    assert world.one(PODS, "pi-worker-0")["spec"]["nodeSelector"] == {"zone": "a"}


async def test_an_edit_that_a_job_cannot_follow_replaces_the_launcher_before_the_resume_is_reported() -> None:
    world = await suspended()
    uid = uid_of(launcher(world))
    await world.edit({"spec": RESUME | launcher_template(containers=[{"name": "launcher", "image": "example.com/other"}])})
    await world.sync()
    assert "delete Job default/pi-launcher" in world.writes
    assert world.status.is_true(c.CONDITION_SUSPENDED), "a launcher that is missing later would be a lost one"
    await world.sync_until_idle()
    world.client.server.remove(JOBS, LAUNCHER)  # what the garbage collector does in the end
    await world.sync_until_idle()
    assert uid_of(launcher(world)) != uid
    assert launcher(world)["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/other"
    assert launcher(world)["spec"]["suspend"] is False
    assert world.recorder.reasons == ["MPIJobResumed"]
    assert world.keys_made == 1


async def test_a_suspended_launcher_is_not_replaced_before_the_resume() -> None:
    world = await suspended()
    await world.suspend(slotsPerWorker=2)
    assert [write for write in world.writes if "Job default" in write] == []


async def test_an_edit_of_a_running_job_is_said_to_be_pending_until_the_next_start() -> None:
    world = await started()
    await world.change(slotsPerWorker=2)
    pending = world.condition(c.CONDITION_UPDATE_PENDING)
    assert (pending.status, pending.reason) == ("True", "EditedAfterStart")
    assert world.recorder.reported == [("Normal", "EditedAfterStart", pending.message)]
    assert [write for write in world.writes if "Job default" in write] == [], "nothing of what runs is touched"
    await world.suspend()
    carry_out(world, startTime=None)
    await world.resume()
    world.client.server.remove(JOBS, LAUNCHER)
    await world.sync_until_idle()
    assert not world.status.is_true(c.CONDITION_UPDATE_PENDING)
    assert world.recorder.reasons == ["EditedAfterStart", "MPIJobSuspended", "MPIJobResumed"]


def drop_unknown_field(world: World) -> None:
    """Do what an API server does that reads a stored job by a CRD which does not know a field of its template."""
    [job] = world.client.server.objects(MPIJOBS)
    read: Any = copy.deepcopy(job)
    del read["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["fromTheFuture"]
    world.client.server.storage.put(MPIJOBS, Key("default", "pi"), read)  # no write of anybody: the generation stays


def forget_generation(world: World) -> None:
    """Make the launcher Job one of an earlier version."""
    noted = {name: text for name, text in annotations_of(launcher(world)).items() if name != names.ANNOTATION_START_GENERATION}
    world.put_metadata(JOBS, "pi-launcher", annotations=noted)


SCALED, EDITED = {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}, {"slotsPerWorker": 2}
DROPS = [
    ("the field is dropped", {}, {}, False),
    ("it is dropped, then the job is edited", {}, EDITED, True),
    ("of an earlier version", {"is_earlier": True}, {}, False),
    ("of an earlier version, edited", {"is_earlier": True}, EDITED, True),
    ("of an earlier version, edited without effect on what runs", {"is_earlier": True, "warns": True}, SCALED, False),
    ("of an earlier version, edited before", {"is_earlier": True, "warns": True, "before": EDITED}, {}, True),
]


@pytest.mark.parametrize(("how", "after", "is_pending"), [row[1:] for row in DROPS], ids=[row[0] for row in DROPS])
async def test_a_field_that_the_api_server_drops_is_no_edit(how: dict[str, Any], after: dict[str, Any], *, is_pending: bool) -> None:
    world = World()
    world.client.server.warnings[PODS] = ['unknown field "spec.fromTheFuture"'] if how.get("warns") else []
    roles = launcher_template(fromTheFuture={"a": 1})["mpiReplicaSpecs"] | {"Worker": {"replicas": 2, "template": SSHD}}
    await started(world, mpiReplicaSpecs=roles)
    if before := how.get("before"):
        await world.change(**before)
    if how.get("is_earlier"):
        forget_generation(world)
    drop_unknown_field(world)
    await world.sync_until_idle()
    assert world.status.is_true(c.CONDITION_UPDATE_PENDING) is bool(before)
    if after:
        await world.change(**after)
    assert world.status.is_true(c.CONDITION_UPDATE_PENDING) is is_pending


async def test_taking_an_edit_back_ends_its_being_pending() -> None:
    world = await started()
    await world.change(slotsPerWorker=2)
    await world.change(slotsPerWorker=1)
    assert not world.status.is_true(c.CONDITION_UPDATE_PENDING)


async def test_what_is_pending_at_the_end_is_so_no_more() -> None:
    world = await started()
    await world.change(slotsPerWorker=2)
    await world.end()
    assert not world.status.is_true(c.CONDITION_UPDATE_PENDING)
    assert world.status.conditions[-1].type == "Succeeded"


async def test_a_launcher_of_the_go_operator_is_unsuspended_as_it_is() -> None:
    """It notes no revisions: nobody knows from what it was made, and only what a Job can follow is looked at."""
    world = await suspended()
    go_made = world.put_metadata(JOBS, "pi-launcher", annotations={})
    await world.resume(slotsPerWorker=2, **launcher_template(nodeSelector={"zone": "a"}))
    assert uid_of(launcher(world)) == uid_of(go_made)
    assert launcher(world)["spec"]["suspend"] is False
    assert launcher(world)["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}


async def test_waiting_for_workers_is_judged_anew_after_a_resume() -> None:
    world = await suspended(launcherCreationPolicy="WaitForWorkersReady")
    await world.resume()
    assert launcher(world)["spec"]["suspend"] is True
    world.start_workers()
    await world.sync_until_idle()
    assert launcher(world)["spec"]["suspend"] is False


async def test_a_worker_that_had_ended_does_not_fail_the_job_after_its_resume() -> None:
    world = await started(runPolicy={"cleanPodPolicy": "Running"})
    world.pod_status("pi-worker-0", "Succeeded")
    await world.suspend()
    carry_out(world, startTime=None)
    await world.resume()
    await world.run_job()
    assert world.names(PODS) == ["pi-launcher-x", "pi-worker-0", "pi-worker-1"]
    assert world.status.is_true(c.CONDITION_RUNNING)


async def test_without_the_right_to_clear_a_start_time_the_job_says_so() -> None:
    world = await suspended(start_time=STARTED)
    world.client.refuse("patch", JOBS, "pi-launcher", StatusError("test", {"code": 403, "message": "jobs/status is forbidden"}), times=1)
    await world.edit({"spec": RESUME | launcher_template(nodeSelector={"zone": "a"})})
    await world.sync_refused()
    stalled = world.condition(c.CONDITION_STALLED)
    assert (stalled.reason, stalled.message) == (
        "Forbidden",
        "Job: jobs/status is forbidden. Change what the message names: the Pod template, the policy, or the operator's rights.",
    )
    await world.sync_until_idle()
    assert launcher(world)["spec"]["suspend"] is False


async def test_a_suspended_launcher_that_goes_while_the_job_is_resumed_is_made_again() -> None:
    world = await suspended()
    deleted = world.put_metadata(JOBS, "pi-launcher", finalizers=["foregroundDeletion"])
    await world.client.delete(JOBS, LAUNCHER, uid=uid_of(deleted))
    await world.resume()
    world.client.server.remove(JOBS, LAUNCHER)
    await world.sync_until_idle()
    assert launcher(world)["spec"]["suspend"] is False
    assert not world.status.is_finished
    assert world.one(MPIJOBS, "pi")["status"]["summary"]["state"] == "Starting"


async def test_a_suspension_that_was_never_reported_is_no_start_that_an_edit_takes_effect_at() -> None:
    """The launcher is unsuspended as it is, because a deleted one would look like a lost one."""
    world = await started()
    await world.edit({"spec": SUSPEND})
    world.client.refuse("patch", MPIJOBS, "pi", StatusError("test", {"code": 500}), times=1)
    await world.sync_refused(StatusError)
    carry_out(world, startTime=None)
    uid = uid_of(launcher(world))
    await world.resume(slotsPerWorker=2)
    assert uid_of(launcher(world)) == uid
    assert launcher(world)["spec"]["suspend"] is False
    assert world.status.is_true(c.CONDITION_UPDATE_PENDING)
    assert not world.status.is_finished


async def test_a_job_that_is_edited_and_resumed_before_its_first_status_is_stored_runs_as_edited() -> None:
    world = await new(runPolicy={"suspend": True})
    world.client.refuse("patch", MPIJOBS, "", StatusError("test", {"code": 500, "reason": "InternalError"}), times=1)
    await world.sync_refused(StatusError)
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    assert not world.status.conditions
    await world.resume(**launcher_template(containers=[{"name": "launcher", "image": "example.com/new"}]))
    world.client.server.remove(JOBS, LAUNCHER)  # which is being deleted in the foreground
    await world.sync_until_idle()
    assert launcher(world)["spec"]["suspend"] is False
    assert launcher(world)["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/new"
    assert world.status.condition(c.CONDITION_UPDATE_PENDING) is None
    assert not world.status.is_finished


HELD = {"metadata": {"finalizers": ["example.com/held"]}}


@pytest.mark.parametrize("pod", ["pi-worker-1", "pi-launcher-x"])
@pytest.mark.parametrize("resumes", [False, True], ids=["suspend", "resume"])
async def test_a_pod_that_does_not_go_is_reported_by_itself_after_a_minute(pod: str, *, resumes: bool) -> None:
    world = await started()
    await world.client.patch(PODS, Key("default", pod), HELD)
    await world.edit({"spec": SUSPEND})
    await world.wait_on_timers(1)
    if pod == "pi-launcher-x":  # the Job controller waits for it
        world.client.server.writes.remove_or_mark(PODS, Key("default", pod))
    else:
        carry_out(world)
    if resumes:
        await world.edit({"spec": RESUME})
    await world.wait_on_timers(50)
    assert current_problem(world.status) is None
    await world.wait_on_timers(15)
    stalled = world.condition(c.CONDITION_RECONCILING)
    assert (stalled.status, stalled.reason, world.status.summary.state) == ("True", "StuckTerminating", "StuckTerminating")
    assert f"Pod {pod}" in stalled.message
    assert "example.com/held" in stalled.message
    await world.client.patch(PODS, Key("default", pod), {"metadata": {"finalizers": []}})
    carry_out(world)
    await world.wait_on_timers(5)
    assert current_problem(world.status) is None
    assert world.status.is_true(c.CONDITION_SUSPENDED) != resumes
