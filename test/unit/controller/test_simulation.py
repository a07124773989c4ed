"""Random lives of a job in a random world, and what must be true of every one of them.

A seed decides everything: what users, kubelets and controllers do and when, which caches are how old, which requests fail, when an operator
dies and whether two of them lead at once. In every other life one operator is alone and lives through it, so that it reports all there is
to report; half of those are calm, with old caches but no trouble, so that nothing is tried in vain. The judge sees the server's whole
history.

A failure names its seed; run that one alone with `MPIOP_SIMULATION_SEEDS=<seed>`. By default a few dozen lives are lived (seconds); a long
run is `MPIOP_SIMULATION_SEEDS=0-20000`.

Two things are taken for granted, because nobody can know without asking the server before each write. No cache of MPIJobs is older than the
vanishing of a launcher Job: a job that looks new may else have been run, recorded and cleaned up since. And a status that got lost on its
way is not stored by another leader, to the letter and within the same second: its event would then be reported by both.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, cast

import pytest

from fakes.cluster import Cluster, Step
from fakes.storage import Change
from fakes.world import KEY, WATCHED, World
from mpiop.api import constants as c
from mpiop.api.parse import parse_mpijob
from mpiop.api.status import parse_status
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller.errors import DampedWriteError, PredecessorError, ResourceExistsError, SecretLostError
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import restart_count
from mpiop.controller.status.status import transitions
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Object, controller_of, key_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES
from mpiop.workqueue import NotReady
from virtual_time import VirtualClock

STEPS = 120
_FIRST, _, _LAST = os.environ.get("MPIOP_SIMULATION_SEEDS", "0-39").partition("-")
SEEDS = range(int(_FIRST), int(_LAST or _FIRST) + 1)


class Life:
    """A cluster, its operators, and a random course of events."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - a reproducible life, no secret
        self.cluster = Cluster(VirtualClock(), self.random)
        self.operators = [self._new_operator(), self._new_operator()]
        self.reported = list[tuple[str, str, str]]()
        self.is_calm = seed % 4 == 0
        self.is_alone = seed % 4 <= 1
        everybody: list[tuple[Step, int]] = [
            (self.cluster.create_job, 6),
            (self.cluster.delete_job, 1),
            (self.cluster.suspend_or_resume, 4),
            (self.cluster.scale, 4),
            (self.cluster.edit_template, 4),
            (self.cluster.spoil_or_repair, 1),
            (self.cluster.delete_worker, 3),
            (self.cluster.delete_support, 1),
            (self.cluster.put_in_the_way, 1),
            (self.cluster.clear_the_way, 2),
            (self.cluster.move_pod, 40),
            (self.cluster.fail_worker, 1),
            (self.cluster.evict_worker, 2),
            (self.cluster.reject_worker, 2),
            (self.cluster.lose_node, 2),
            (self.cluster.disrupt, 2),
            (self.cluster.end_terminating_pods, 10),
            (self.cluster.control_jobs, 20),
            (self.collect_garbage, 8),
            (self.expire_launcher, 2),
            (self.cluster.fail_requests, 12),
            (self.cluster.recover, 6),
            (self.restart, 2),
        ]
        losses, troubles = {self.restart, self.cluster.delete_job}, {self.cluster.put_in_the_way, self.cluster.fail_requests}
        left_out = (losses if self.is_alone else set()) | (troubles | {self.cluster.delete_support} if self.is_calm else set())
        if seed % 3 == 1:  # a life of a job with a budget, whose pods are lost again and again
            left_out |= {self.cluster.move_pod, self.cluster.suspend_or_resume, self.expire_launcher, self.cluster.spoil_or_repair}
            everybody += [(self.cluster.start_pods, 20), (self.cluster.lose_node, 2), (self.cluster.end_launcher, 1)]
            self.cluster.is_lossy = True
        everybody = [(step, weight) for step, weight in everybody if step not in left_out]
        if self.is_alone:
            del self.operators[1]
        self.steps, self.weights = zip(*everybody, strict=True)

    def expire_launcher(self) -> None:
        self.cluster.expire_launcher()
        self._see_jobs()

    def collect_garbage(self) -> None:
        self.cluster.collect_garbage()
        self._see_jobs()

    def _see_jobs(self) -> None:
        """Let no cache of MPIJobs be older than the vanishing of a launcher Job (see above)."""
        for operator in self.operators:
            operator.refresh(MPIJOBS)

    def restart(self) -> None:
        """Let an operator die and another begin with an empty memory."""
        index = self.random.randrange(len(self.operators))
        self._collect(self.operators[index])
        self.operators[index] = self._new_operator()

    def _new_operator(self) -> World:
        """Return an operator with an empty memory, whose caches have been filled once."""
        operator = World(client=self.cluster.client)
        operator.refresh()
        return operator

    async def live(self) -> None:
        for _ in range(STEPS):
            for step in self.random.choices(self.steps, self.weights, k=self.random.randint(1, 6)):
                step()
            operators = [operator for operator in self.operators if self.random.random() < 0.6]
            await asyncio.gather(*(self._sync(operator) for operator in operators))
            await asyncio.sleep(self.random.choice((0.0, 0.1, 0.3) if self.is_calm else (0.0, 0.3, 1.0, 5.0, 31.0)))

    async def rest(self) -> None:
        """End all faults and let the operators, kubelets and controllers come to rest."""
        self.cluster.recover()
        self.cluster.clear_the_way()
        for _ in range(40):
            before = self.cluster.server.storage.version
            waits = [await self.see_and_sync(operator) for operator in self.operators]
            for _ in range(3):
                self.cluster.end_terminating_pods()
                self.cluster.control_jobs()
                self.cluster.collect_garbage()
                self.cluster.start_pods()
            await asyncio.sleep(31)
            if not any(wait is not None for wait in waits) and self.cluster.server.storage.version == before:
                break
        for operator in self.operators:
            self._collect(operator)

    async def see_and_sync(self, operator: World) -> float | None:
        operator.refresh()
        return await self._try(operator)

    async def _sync(self, operator: World) -> None:
        stores = [resource for resource in WATCHED if self.random.random() < 0.7]
        if stores:
            operator.refresh(*stores)
        await self._try(operator)

    async def _try(self, operator: World) -> float | None:
        """Sync, and return the seconds after which to do it again."""
        wait: float | None = 0.0
        try:
            wait = await operator.syncer.sync(KEY)
        except* (KubeError, DampedWriteError, PredecessorError, ResourceExistsError, SecretLostError, NotReady):
            pass
        return wait

    def _collect(self, operator: World) -> None:
        for uid, (_, reason, message) in zip(operator.recorder.uids, operator.recorder.reported, strict=True):
            self.reported.append((uid, reason, message))
        operator.recorder.reported.clear()
        operator.recorder.uids.clear()


@pytest.mark.parametrize("seed", SEEDS)
async def test_any_life(seed: int) -> None:
    life = Life(seed)
    await life.live()
    await life.rest()
    check_history(life)
    check_rest(life)
    await check_idleness(life)
    await check_memory(life)


def check_history(life: Life) -> None:
    """Check what must be true at every moment."""
    server = life.cluster.server
    # The patch of its addresses is for any version of the pod: an old cache, or an answer that was lost, lets it be sent again.
    useless = [write for write in server.useless if life.is_calm or not write.startswith("patch Pod default/pi-launcher-")]
    assert useless == [], "no write that changes nothing"
    if life.is_calm:
        assert [str(action) for action in server.actions if action.verb == "create" and action.error] == [], "nothing is made twice"
    assert server.foreign == [], "nothing is touched that is not the job's"
    assert server.unlawful == [], "no change that the Job's rules forbid"
    keys = Counter(_owner(change.new) for change in server.storage.history if change.resource is SECRETS and change.old is None)
    assert all(count == 1 for owner, count in keys.items() if owner), "one SSH key a job"
    check_launchers(server.storage.history)
    check_restarts(server.storage.history)
    changes = [
        change for change in server.storage.history if change.resource is MPIJOBS and change.old is not None and not change.is_deletion
    ]
    happened = sum((news_of(change) for change in changes), Counter[tuple[str, str, str]]())
    reported = Counter(life.reported)
    assert reported <= happened, f"reported more than happened: {reported - happened}"
    assert reported == happened or not life.is_alone, f"not reported: {happened - reported}"


def news_of(change: Change) -> Counter[tuple[str, str, str]]:
    """Check one write of an MPIJob and return its transitions."""
    before, after = parse_status((change.old or {}).get("status")), parse_status(change.new.get("status"))
    if before.is_finished:
        assert [(x.type, x.reason) for x in before.conditions if x.status == "True"] == [
            (x.type, x.reason) for x in after.conditions if x.status == "True"
        ], "what has ended stays so"
        assert before.completion_time == after.completion_time
    assert not (after.is_finished and after.is_true(c.CONDITION_RUNNING))
    assert not (after.is_true(c.CONDITION_SUCCEEDED) and after.is_true(c.CONDITION_FAILED))
    return Counter((change.new["metadata"]["uid"], changes.reason, changes.message) for changes in transitions(KEY, before, after))


def check_launchers(history: list[Change]) -> None:
    """Check that no launcher Job is made again after the end, nor when the first was seen to exist and is gone."""
    jobs, suspended, begun, lost = dict[str, MPIJobStatus](), dict[str, bool](), set[str](), set[str]()
    for change in history:
        uid = change.new["metadata"]["uid"] if change.resource is MPIJOBS else _owner(change.new)
        if change.resource is MPIJOBS and change.is_deletion:
            del jobs[uid]
        elif change.resource is MPIJOBS:
            jobs[uid] = parse_status(change.new.get("status"))
            suspended[uid] = change.new["spec"]["runPolicy"]["suspend"] or jobs[uid].is_true(c.CONDITION_SUSPENDED)
            lost -= {uid} if suspended[uid] else set()
        elif change.resource is JOBS and uid in jobs and change.is_deletion:
            lost |= {uid} if c.LAUNCHER in jobs[uid].replica_statuses and not suspended[uid] else set()
        elif change.resource is JOBS and uid in jobs and change.old is None:
            assert uid not in lost, "a launcher was run twice"
            assert not (jobs[uid].is_finished and uid in begun), "a finished job was started again"
            begun.add(uid)


def check_restarts(history: list[Change]) -> None:
    """Check that restarts are counted one by one, are stored before anything is done, and that there are never two attempts at a time."""
    stored, running = dict[str, int](), dict[str, set[str]]()
    for change in history:
        uid = change.new["metadata"]["uid"] if change.resource is MPIJOBS else _owner(change.new)
        if change.resource is MPIJOBS:
            count = parse_status(change.new.get("status")).restarts
            assert count - stored.get(uid, 0) in {0, 1}, "a restart is lost or repeated"
            stored[uid] = count
        elif change.resource is JOBS and uid in stored:
            assert restart_count(change.new) <= stored[uid], "restarted before that was stored"
        elif change.resource is PODS and "-launcher-" in change.new["metadata"]["name"]:
            alive = running.setdefault(uid, set())
            is_over = change.is_deletion or pods.is_finished(change.new)
            (alive.discard if is_over else alive.add)(change.new["metadata"]["name"])
            assert len(alive) <= 1, "two tries at a time"


def check_rest(life: Life) -> None:
    """Check that the world has become what the job wants."""
    raw = life.cluster.job
    if raw is None:
        assert life.cluster.pods() == life.cluster.server.objects(JOBS) == []
        return
    status = parse_status(raw.get("status"))
    assert not status.is_true(c.CONDITION_RESTARTING), "a restart is carried out"
    if raw["spec"].get("slotsPerWorker") == -1:
        assert status.is_finished or status.summary.state == "ValidationError"
    elif status.is_finished:
        check_end(life, parse_mpijob(raw))
    else:
        check_life(life, parse_mpijob(raw))


def check_life(life: Life, job: MPIJob) -> None:
    """Check a job that has not ended."""
    workers, launchers = life.cluster.workers(), life.cluster.server.objects(JOBS)
    config_map = next(obj for obj in life.cluster.server.objects(CONFIG_MAPS))
    running = sum(map(pods.is_running, workers))
    all_run = running == job.worker_replicas
    assert sorted(key_of(pod).name for pod in workers) == [
        f"pi-worker-{index}" for index in range(0 if job.is_suspended else job.worker_replicas)
    ]
    assert config_map["data"]["hostfile"].count("\n") == job.worker_replicas
    assert config_map["data"]["discover_hosts.sh"].count("echo") == running
    assert job.status.is_true(c.CONDITION_SUSPENDED) == job.is_suspended
    ended_worker_problem = job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY and any(map(pods.is_finished, workers))
    assert job.status.is_true(c.CONDITION_STALLED) == (ended_worker_problem and bool(not launchers or launchers[0]["spec"].get("suspend")))
    assert job.status.summary.workers == f"{running}/{job.worker_replicas}"
    if job.is_suspended:
        assert [obj["spec"]["suspend"] for obj in launchers] == [True]
    elif all_run or job.launcher_creation_policy == c.AT_STARTUP:
        assert [bool(obj["spec"].get("suspend")) for obj in launchers] == [False]
        assert job.status.is_true(c.CONDITION_RUNNING) or not all_run
        check_templates(job, launchers[0])


def check_templates(job: MPIJob, launcher: Object) -> None:
    """Check that the launcher is as the job wants it, or the job reports that it is not."""
    desired, made = job.launcher.template["spec"], launcher["spec"]["template"]["spec"]
    is_same = (
        desired.get("nodeSelector") == made.get("nodeSelector") and desired["containers"][0]["image"] == made["containers"][0]["image"]
    )
    assert is_same or job.status.is_true(c.CONDITION_UPDATE_PENDING)


def check_end(life: Life, job: MPIJob) -> None:
    """Check the clean-up."""
    workers = life.cluster.workers()
    match job.run_policy.clean_pod_policy:
        case c.CLEAN_ALL:
            assert workers == []
        case c.CLEAN_RUNNING:
            assert all(map(pods.is_finished, workers))
    if job.run_policy.ttl_seconds_after_finished is not None:
        check_nothing_is_left(life)
    launchers = [obj for obj in life.cluster.server.objects(JOBS) if pods.job_outcome(obj) is None]
    assert all(obj["spec"].get("suspend") for obj in launchers), "nothing runs on after the end"
    counts = job.status.replica_statuses.get(c.LAUNCHER)
    assert counts is None or counts.active == 0
    assert job.status.completion_time is not None


def check_nothing_is_left(life: Life) -> None:
    """Check that the time to live took everything; a Secret may stay if its ConfigMap was deleted by somebody else."""
    assert [key_of(obj) for resource in (JOBS, SERVICES, CONFIG_MAPS) for obj in life.cluster.server.objects(resource)] == []
    assert life.cluster.pods() == []
    deleted_by_hand = [change for change in life.cluster.server.storage.history if change.resource is CONFIG_MAPS and change.is_deletion]
    assert life.cluster.server.objects(SECRETS) == [] or len(deleted_by_hand) > 1 or not life.is_calm


async def check_idleness(life: Life) -> None:
    """Check that a world at rest costs nothing."""
    before = len(life.cluster.server.actions)
    for operator in life.operators:
        await life.see_and_sync(operator)
    assert [str(action) for action in life.cluster.server.actions[before:]] == []


async def check_memory(life: Life) -> None:
    """Check that an operator forgets a job that is gone."""
    life.cluster.delete_job()
    for operator in life.operators:
        await life.see_and_sync(operator)
        assert not any(operator.memory._tables)
        assert not operator.metrics._shown


def _owner(obj: Mapping[str, Any]) -> str:
    controller = controller_of(cast("Object", obj))
    return "" if controller is None else controller["uid"]
