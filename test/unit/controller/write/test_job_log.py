"""The log records the life of a job."""

from collections.abc import Mapping
from typing import Any

from structlog.testing import capture_logs

from fakes.world import World
from mpiop.kube.errors import StatusError
from mpiop.kube.resources import PODS


def story(logs: list[Mapping[str, Any]]) -> list[str]:
    return [line["event"] for line in logs if line["event"].startswith(("job ", "launcher failed"))]


async def test_the_life_of_a_job_can_be_told_from_the_log() -> None:
    world = World()
    with capture_logs() as logs:
        await world.submit(runPolicy={"cleanPodPolicy": "Running"})
        world.client.refuse("create", PODS, "pi-worker-0", StatusError("create pods", {"code": 403, "message": "exceeded quota"}), times=1)
        await world.sync_refused()
        await world.sync_until_idle()
        await world.run_job()
        await world.suspend()
        await world.resume()
        await world.run_job()
        await world.end()
    assert story(logs) == [
        *("job created", "job waits", "job running", "job suspended", "job resumed"),
        *("job running", "job succeeded", "job cleaned up"),
    ]
    assert next(line for line in logs if line["event"] == "job cleaned up")["deleted"] == 2
    stalled = next(line for line in logs if line["event"] == "job waits")
    assert (stalled["job"], stalled["generation"], stalled["reason"]) == ("default/pi", 1, "QuotaExceeded")
    assert stalled["uid"]
