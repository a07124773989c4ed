"""Why a Pod waits, where only its events report it."""

import asyncio
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI
from fakes.api_server import FakeClient
from mpiop.api.status_types import Condition
from mpiop.api.types import MPIJob
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.observed import Observed
from mpiop.controller.write.warning_events import WarningEvents, longest_waiting, newest_warning
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import key_of
from mpiop.kube.resources import EVENTS
from virtual_time import EPOCH, VirtualClock

PENDING = observed(worker(0, "Pending"), worker(1))
BOTH_RUN = observed(worker(0), worker(1))
NO_LAUNCHER_POD = observed(worker(0), worker(1), launcher=launcher())
SUSPENDED = launcher(suspend=True, active=1, startTime="2026-01-01T00:00:00Z")
IGNORED = observed(worker(0), worker(1), launcher=SUSPENDED, launcher_pods=(launcher_pod(),))


def event(reason: str, message: str, second: int, *, type_: str = "Warning", count: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{reason}.{second}", "namespace": "default"},
        "involvedObject": {"uid": worker(0)["metadata"]["uid"]},
        "type": type_,
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
        "count": count,
    }


MOUNT = event("FailedMount", 'MountVolume.SetUp failed for volume "v": secret "s" not found', 1)
SLOW_READ = 'MountVolume.SetUp failed for volume "v" : failed to sync secret cache: timed out waiting for the condition'

SCHEDULED = event("Scheduled", "assigned", 1, type_="Normal") | {"lastTimestamp": None, "eventTime": "2026-01-01T00:00:01.250000Z"}


WAITS = [
    ("a worker that is not Ready", PENDING, "pi-worker-0"),
    ("nothing", BOTH_RUN, None),
    ("a launcher that is pending", observed(worker(0), worker(1), launcher_pods=(launcher_pod("Pending"),)), "pi-launcher-x"),
    ("a launcher Job without a Pod", NO_LAUNCHER_POD, "pi-launcher"),
    ("it before a worker that is pending", observed(worker(0, "Pending"), worker(1), launcher=launcher()), "pi-launcher"),
    ("not one that is suspended", observed(worker(0), worker(1), launcher=launcher(suspend=True)), None),
    ("one whose Pod is not deleted", IGNORED, "pi-launcher"),
    ("not a worker that has ended", observed(worker(0, "Failed"), worker(1)), None),
]


@pytest.mark.parametrize(("observation", "name"), [row[1:] for row in WAITS], ids=[row[0] for row in WAITS])
def test_a_job_waits_for(observation: Observed, name: str | None) -> None:
    waiting = longest_waiting(PI, observation)
    assert (key_of(waiting).name if waiting else None) == name


READS: list[tuple[str, list[dict[str, Any]], str | None]] = [
    ("no event", [], None),
    ("a warning", [MOUNT], "FailedMount"),
    ("a warning that is over", [MOUNT, event("Pulling", "pulling image", 2, type_="Normal")], None),
    ("a warning of the same second as another event", [MOUNT, SCHEDULED], "FailedMount"),
    ("a busy node that reads a Secret late", [SCHEDULED, event("FailedMount", SLOW_READ, 2, count=2)], None),
    ("a node that cannot read a Secret", [SCHEDULED, event("FailedMount", SLOW_READ, 2, count=3)], "FailedMount"),
    ("the newest counts", [event("Unhealthy", "probe failed", 5), MOUNT], "Unhealthy"),
    ("a quota of the launcher", [event("FailedCreate", 'pods "pi" is forbidden: exceeded quota: q', 1)], "QuotaExceeded"),
    ("a policy for the launcher", [event("FailedCreate", 'admission webhook "w" denied the request: no', 1)], "Forbidden"),
    ("another refusal of the launcher", [event("FailedCreate", "Pod is invalid", 1)], "FailedCreate"),
    ("an end that the launcher Job does not have yet", [event("DeadlineExceeded", "Job was active longer", 1)], None),
]


@pytest.mark.parametrize(("events", "reason"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_events_say(events: list[dict[str, Any]], reason: str | None) -> None:
    found = newest_warning(worker(0), events)
    assert (found.reason if found else None) == reason


class Asked:
    """A server with the event MOUNT, asked as a sync asks."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.client = FakeClient(self.clock)
        self.client.server.put(EVENTS, MOUNT)
        self.events = WarningEvents(self.client, self.clock, JobMemory())

    async def reason(self, job: MPIJob = PI, observation: Observed = PENDING) -> str | None:
        found, self.wait_seconds = await self.events.problem(job, observation, self.clock.now())
        return found.reason if found else None

    @property
    def lists(self) -> int:
        return sum(request.verb == "list" for request in self.client.server.requests)


async def test_a_pod_is_asked_about_after_three_seconds_and_then_each_thirty() -> None:
    asked = Asked()
    assert (await asked.reason(), asked.lists, asked.wait_seconds) == (None, 0, 3.0)
    await asyncio.sleep(3)
    assert (await asked.reason(), asked.lists, asked.wait_seconds) == ("FailedMount", 1, 30.0)
    await asyncio.sleep(29)
    assert (await asked.reason(), asked.lists, asked.wait_seconds) == ("FailedMount", 1, 1.0)
    asked.client.server.remove(EVENTS, key_of(MOUNT))
    await asyncio.sleep(1)
    assert (await asked.reason(), asked.lists, asked.wait_seconds) == (None, 2, 5.0)


async def test_while_no_event_names_a_cause_a_pod_is_asked_about_sooner_but_ever_less_often() -> None:
    asked = Asked()
    asked.client.server.remove(EVENTS, key_of(MOUNT))
    await asyncio.sleep(3)
    for lists, seconds in enumerate((5.0, 10.0, 20.0), start=1):
        assert (await asked.reason(), asked.lists, asked.wait_seconds) == (None, lists, seconds)
        await asyncio.sleep(seconds)
    asked.client.server.put(EVENTS, MOUNT)
    assert (await asked.reason(), asked.lists, asked.wait_seconds) == ("FailedMount", 4, 30.0)


async def test_a_pod_that_has_changed_is_asked_about_three_seconds_later() -> None:
    asked = Asked()
    await asyncio.sleep(3)
    await asked.reason()
    started = observed(worker(0, conditions=[], metadata={"resourceVersion": "12"}), worker(1))
    await asyncio.sleep(5)
    assert (await asked.reason(observation=started), asked.lists, asked.wait_seconds) == ("FailedMount", 1, 3.0)
    asked.client.server.put(EVENTS, event("Unhealthy", "probe failed", 5))
    await asyncio.sleep(3)
    assert (await asked.reason(observation=started), asked.lists, asked.wait_seconds) == ("Unhealthy", 2, 30.0)


GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
READINESS_GATE = [
    {"type": "PodScheduled", "status": "True"},
    {
        "type": "Ready",
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": 'condition of pod readiness gate "g" does not exist.',
    },
]


class Silent(NamedTuple):
    id: str
    observation: Observed
    reason: str | None
    words: str = ""


SILENT = [
    Silent("no scheduler", PENDING, "Unhandled", "no scheduler has seen pod pi-worker-0. "),
    Silent("held back by a gate", observed(worker(0, "Pending", conditions=GATED), worker(1)), None),
    Silent("no Job controller", NO_LAUNCHER_POD, "Unhandled", "a Pod for the Job pi-launcher. "),
    Silent("no Job controller to suspend", IGNORED, "Unhandled", "the Pod of the suspended Job pi-launcher. "),
    Silent("a readiness gate", observed(worker(0, conditions=READINESS_GATE), worker(1)), "Unhealthy", 'gate "g" does not exist. '),
]


@pytest.mark.parametrize("may_read", [True, False], ids=["", "without the right to read events"])
@pytest.mark.parametrize("silent", SILENT, ids=lambda silent: silent.id)
async def test_what_nobody_acts_on_and_no_event_explains_is_reported_after_a_minute(silent: Silent, *, may_read: bool) -> None:
    asked = Asked()
    asked.client.server.remove(EVENTS, key_of(MOUNT))
    if not may_read:
        asked.client.refuse("list", EVENTS, "", StatusError("list events", {"code": 403}))
    passed = 0.0
    while passed < 60:
        assert await asked.reason(observation=silent.observation) is None
        assert asked.wait_seconds is not None
        await asyncio.sleep(min(asked.wait_seconds, 60 - passed))
        passed += min(asked.wait_seconds, 60 - passed)
    found, _ = await asked.events.problem(PI, silent.observation, asked.clock.now())
    assert (found and found.reason) == silent.reason
    assert found is None or silent.words in found.message


async def test_a_wait_with_a_break_begins_anew() -> None:
    asked = Asked()
    asked.client.server.remove(EVENTS, key_of(MOUNT))
    for _ in range(2):
        await asyncio.sleep(120)  # meanwhile there was another problem
        assert await asked.reason() is None
    for _ in range(2):
        await asyncio.sleep(30)
        reason = await asked.reason()
    assert reason == "Unhandled"


async def test_what_waits_no_more_has_no_problem_and_the_next_pod_is_asked_about_at_once() -> None:
    asked = Asked()
    await asyncio.sleep(3)
    await asked.reason()
    assert await asked.reason(observation=BOTH_RUN) is None
    assert asked.wait_seconds is None
    await asyncio.sleep(1)
    await asked.reason()
    assert asked.lists == 2


async def test_of_many_jobs_of_a_namespace_ten_ask_at_once_and_the_others_keep_their_problem_until_it_is_their_turn() -> None:
    asked = Asked()
    stalled = Condition("Stalled", "True", "FailedMount", "", EPOCH, EPOCH)
    other = replace(PI, name="other", status=replace(PI.status, conditions=(stalled,)))
    await asyncio.sleep(3)
    for number in range(10):
        job = replace(PI, name=f"job-{number}")
        await asked.reason(job, observed(worker(0, "Pending", job=job), job=job))
    elsewhere = replace(PI, namespace="elsewhere")
    await asked.reason(elsewhere, observed(worker(0, "Pending", job=elsewhere), job=elsewhere))
    assert asked.lists == 11, "each namespace has its own limit"
    observation = observed(worker(0, "Pending", job=other), job=other)
    assert (await asked.reason(other, observation), asked.lists, asked.wait_seconds) == ("FailedMount", 11, 10.0)
    await asyncio.sleep(10)
    await asked.reason(other, observation)
    assert asked.lists == 12


async def test_many_namespaces_with_many_waiting_jobs_do_not_delay_the_first_answer_of_another() -> None:
    asked = Asked()
    for _ in range(20):
        await asyncio.sleep(3)
        for number in range(600):
            crowd = replace(PI, namespace=f"crowd-{number % 60}", name=f"job-{number}")
            await asked.reason(crowd, observed(worker(0, "Pending", job=crowd), job=crowd))
    assert asked.lists < 50 + 3 * 20 * 20, "all together have a limit"
    assert await asked.reason() == "FailedMount"


async def test_a_problem_stays_while_its_events_cannot_be_read() -> None:
    asked = Asked()
    asked.client.refuse("list", EVENTS, "", StatusError("list events", {"code": 500}))
    await asyncio.sleep(3)
    assert await asked.reason() is None
    stalled = Condition("Stalled", "True", "FailedMount", "", EPOCH, EPOCH)
    await asyncio.sleep(30)
    assert await asked.reason(replace(PI, status=replace(PI.status, conditions=(stalled,)))) == "FailedMount"


async def test_without_the_right_nothing_is_asked_for_ten_minutes() -> None:
    asked = Asked()
    asked.client.refuse("list", EVENTS, "", StatusError("list events", {"code": 403}))
    await asyncio.sleep(3)
    assert await asked.reason() is None
    await asyncio.sleep(60)
    assert (await asked.reason(), asked.lists) == ("Unhandled", 1)
    asked.client.server.allow()
    await asyncio.sleep(600)
    assert await asked.reason() == "FailedMount"
