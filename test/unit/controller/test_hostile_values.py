"""Annotations, times and counts that anybody may write, on every object of a job: each is refused or ignored, and none raises."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from fakes.world import KEY, World, running
from mpiop.api import constants as c
from mpiop.api.annotations import AVOID_FAILED_NODES, CHECKPOINT_SIGNAL, JOB_ANNOTATIONS, MAX_RESTARTS, RESTART_WINDOW, SSH
from mpiop.controller import names
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, key_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES
from mpiop.workqueue import NotReady

ANNOTATIONS = sorted({row.name for row in (*JOB_ANNOTATIONS, *names.ANNOTATIONS)})
TEXTS = {
    "5,000 digits": "9" * 5_000,
    "256 kB": "1" * (256 << 10),
    "256 kB of durations": "1s" * (128 << 10),
    "5,000 digits of a duration": "9" * 5_000 + "h",
    "the most that a duration seems to allow": "999999999d",
    "Arabic digits": "٣",
    "a duration in Arabic digits": "٣m",
    "a superscript": "²",
    "three words of superscripts": "² ² 2026-01-01T00:00:00Z",
    "three words of 5,000 digits": f"{'9' * 5_000} {'9' * 5_000} 9",
    "control characters": "\x00\x1b[2J\r\n\u2028",
    "not a number": "NaN",
    "infinity": "1e400",
    "minus zero": "-0",
    "the last second": "9999-12-31T23:59:59Z",
    "before the first second": "0001-01-01T00:00:00+23:59",
    "no time at all": "0000-00-00T00:00:00Z",
    "empty": "",
}
TIMES = ("9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "2026-01-01", "x" * 5_000, "")
COUNTS = (2**31 - 1, 2**63 - 1, -1, 1e308)
HELD = {"metadata": {"finalizers": ["example.com/held"]}}


async def outlive(world: World) -> None:
    """Sync through what may happen to a job; only what the API server refuses may fail."""
    steps: list[Callable[[], Any]] = [
        lambda: None,
        lambda: world.pod_status("pi-worker-1", "Failed", reason="Evicted"),
        lambda: world.edit({"spec": {"runPolicy": {"suspend": True}}}),
        lambda: world.edit({"spec": {"runPolicy": {"suspend": False}}}),
        lambda: world.end_launcher("Failed", reason="BackoffLimitExceeded"),
    ]
    for step in steps:
        if asyncio.iscoroutine(done := step()):
            await done
        for _ in range(3):
            try:
                await world.sync()
            except* (KubeError, NotReady):
                pass
            await asyncio.sleep(1)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("budget", ["3", None], ids=["with a budget", "without"])
async def test_any_annotation_may_have_any_value(text: str, budget: str | None) -> None:
    world = await running(mpiImplementation="Intel")
    for resource in (MPIJOBS, PODS, JOBS, CONFIG_MAPS, SERVICES):
        for obj in world.client.server.objects(resource):
            kept = {MAX_RESTARTS.name: budget} if budget and resource is MPIJOBS else {}
            obj["metadata"]["annotations"] = dict.fromkeys(ANNOTATIONS, text) | kept
            if resource is JOBS:
                obj["spec"]["template"]["metadata"]["annotations"] = dict.fromkeys(ANNOTATIONS, text)
            world.client.server.put(resource, obj)
    await outlive(world)


@pytest.mark.parametrize("annotation", ANNOTATIONS)
async def test_each_annotation_of_a_running_job_may_have_any_value(annotation: str) -> None:
    world = await running(mpiImplementation="Intel")
    for text in TEXTS.values():
        given = {MAX_RESTARTS.name: "3", CHECKPOINT_SIGNAL.name: "SIGUSR1", SSH.name: c.SSH_INJECTED}
        await world.edit({"metadata": {"annotations": given | {annotation: text}}})
        await world.sync()
    assert not world.status.is_finished


@pytest.mark.parametrize("text", [*TEXTS.values(), "1s" * 100], ids=[*TEXTS, "a hundred durations"])
async def test_no_hostile_text_counts_as_a_duration(text: str) -> None:
    world = World()
    annotations = {MAX_RESTARTS.name: "1", RESTART_WINDOW.name: text or "none"}
    created = await world.submit()
    await world.client.patch(MPIJOBS, key_of(created), {"metadata": {"annotations": annotations}})
    await world.sync()
    stalled = world.condition(c.CONDITION_STALLED)
    assert stalled.status == "True"
    assert "restart-window]: Invalid value" in stalled.message


@pytest.mark.parametrize(("time", "count"), list(itertools.zip_longest(TIMES, COUNTS, fillvalue=0)))
async def test_others_may_have_written_any_time_and_count_into_a_status(time: str, count: float) -> None:
    world = await running(mpiImplementation="Intel", runPolicy={"activeDeadlineSeconds": 2**63 - 1, "ttlSecondsAfterFinished": 2**31 - 1})
    annotations = {MAX_RESTARTS.name: "3", RESTART_WINDOW.name: "365d", AVOID_FAILED_NODES.name: "true"}
    await world.edit({"metadata": {"annotations": annotations}})
    restart = {"number": count, "time": time, "reason": "NodeLost", "message": "x", "launcherPods": ["a"], "failedNodes": ["node-1"]}
    job = world.one(MPIJOBS, KEY.name)
    job["status"] |= {
        "startTime": time,
        "restarts": count,
        "lastRestarts": [restart],
        "failedNodes": ["node-1"],
        "lostWorker": {"pod": "pi-worker-1", "reason": "NodeLost", "message": "x", "time": time, "launcherTry": "pi-launcher-x/0"},
        "attempts": [{"number": count, "pod": "a", "endTime": time, "exitCode": count}],
        "replicaStatuses": {"Launcher": {"failed": count}},
    }
    world.client.server.put(MPIJOBS, job)
    for pod in world.client.server.objects(PODS):
        ended = {"exitCode": 1, "startedAt": time, "finishedAt": time}
        row = {"name": "worker", "restartCount": 1, "state": {"terminated": ended}, "lastState": {"terminated": ended}}
        world.client.server.put_status(PODS, key_of(pod), {**pod["status"], "containerStatuses": [row]})
        world.client.server.put(PODS, {**pod, "metadata": {**pod["metadata"], **HELD["metadata"], "deletionTimestamp": time}})
    world.client.server.put_status(JOBS, Key("default", "pi-launcher"), {"startTime": time, "completionTime": time})
    await outlive(world)


@pytest.mark.parametrize("time", TIMES)
async def test_the_end_of_a_launcher_may_have_any_time(time: str) -> None:
    world = await running(runPolicy={"ttlSecondsAfterFinished": 2**31 - 1})
    world.end_launcher()
    status = {"completionTime": time, "conditions": [{"type": "Complete", "status": "True"}]}
    world.client.server.put_status(JOBS, Key("default", "pi-launcher"), status)
    await world.sync()
    assert world.status.is_true(c.CONDITION_SUCCEEDED)
    await outlive(world)
