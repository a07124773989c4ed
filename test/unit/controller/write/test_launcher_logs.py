"""The last words of a launcher that failed."""

import asyncio
from typing import Any

import pytest

from example_children import failures_of, launcher_pod
from example_jobs import PI
from fakes.api_server import FakeClient
from fakes.world import running
from mpiop.controller.observe.launcher_failures import LauncherFailures
from mpiop.controller.status.verdict import LastWords
from mpiop.controller.write.launcher_logs import BYTES, LauncherLogs, cleaned
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, key_of
from mpiop.kube.resources import PODS
from virtual_time import VirtualClock

ENDED = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:05Z"}
POD = Key("default", "pi-launcher-x")


def failed(**state: Any) -> LauncherFailures:
    return failures_of(launcher_pod(containerStatuses=[{"name": "launcher", **state}]))


@pytest.mark.parametrize(
    ("state", "previous"),
    [
        pytest.param({"state": {"terminated": ENDED}}, "", id="ended"),
        pytest.param({"state": {"running": {}}, "lastState": {"terminated": ENDED}}, "true", id="restarted since"),
    ],
)
async def test_the_log_of_the_container_that_failed_is_read(state: dict[str, Any], previous: str) -> None:
    client = FakeClient()
    client.server.logs[POD] = "line\nsegmentation fault\n"
    assert await LauncherLogs(client, VirtualClock()).last_words(PI.key, failed(**state)) == LastWords("line\nsegmentation fault")
    [request] = client.server.requests
    assert (request.path, request.params.get("previous", "")) == ("/api/v1/namespaces/default/pods/pi-launcher-x/log", previous)
    assert (request.params["container"], request.params["tailLines"]) == ("launcher", "80")


async def test_nothing_is_read_of_a_launcher_that_did_not_fail() -> None:
    client = FakeClient()
    assert await LauncherLogs(client, VirtualClock()).last_words(PI.key, failures_of(launcher_pod())) == LastWords()
    assert client.server.requests == []


async def test_without_the_right_nothing_is_asked_for_ten_minutes() -> None:
    client = FakeClient()
    client.server.logs[POD] = "words"
    client.refuse("log", PODS, "", StatusError("log pods", {"code": 403}))
    logs = LauncherLogs(client, VirtualClock())
    assert [await logs.last_words(PI.key, failed(state={"terminated": ENDED})) for _ in range(3)] == [LastWords()] * 3
    assert len(client.server.requests) == 1
    elsewhere = launcher_pod(metadata={"namespace": "granted"}, containerStatuses=[{"name": "launcher", "state": {"terminated": ENDED}}])
    await logs.last_words(PI.key, failures_of(elsewhere))
    assert len(client.server.requests) == 2, "the right may be there in another namespace"
    client.server.allow()
    await asyncio.sleep(600)
    assert await logs.last_words(PI.key, failed(state={"terminated": ENDED})) == LastWords("words")


async def test_a_pod_that_is_gone_has_no_last_words() -> None:
    assert await LauncherLogs(FakeClient(), VirtualClock()).last_words(PI.key, failed(state={"terminated": ENDED})) == LastWords()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("one\ntwo\n", "one\ntwo"),
        ("\x1b[31mred\x1b[0m\r\n\tπ\x00", "[31mred[0m\n\tπ"),
        ("x" * 3000, "x" * BYTES),
        ("lost\n" + "é" * 1023, "é" * 1023),
    ],
    ids=["as it is", "control characters", "a long line", "cut at a line end"],
)
def test_what_is_kept(text: str, clean: str) -> None:
    assert cleaned(text) == clean
    assert len(clean.encode()) <= BYTES


async def test_the_status_keeps_them_when_the_pod_is_gone() -> None:
    world = await running()
    [pod] = [key_of(pod) for pod in world.stores[PODS].values() if "launcher" in key_of(pod).name]
    world.client.server.logs[pod] = "Traceback: no such file"
    world.client.server.put_status(PODS, pod, {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ENDED}}]})
    await world.sync_until_idle()
    world.client.server.remove(PODS, pod)
    await world.end("Failed", reason="BackoffLimitExceeded", message="no more tries")
    assert world.status.last_failure is not None
    assert world.status.last_failure.log == "Traceback: no such file"
    row = world.condition("Failed")
    assert row.message.endswith("exit code 1\nTraceback: no such file")
