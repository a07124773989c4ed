"""Jobs under asyncio."""

import asyncio
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from fakes.client_api import FakeApi, pod, stored
from fakes.ranks import Ranks, printed
from mpiop.client import AsyncMPI, JobFailed, JobTimeoutError, UnreachableError
from mpiop.client.api import LogOptions


@pytest.mark.real_time
async def test_the_same_under_asyncio() -> None:
    api = FakeApi(stored("old", state="Succeeded"))
    mpi = AsyncMPI(api=api, image="i")
    assert [job.name for job in await mpi.jobs()] == ["old"]
    old = await mpi.get("old")
    assert (await old.wait()).has_succeeded
    assert (await old.refresh()).state == "Succeeded"
    assert await old.why() == "Job old succeeded."
    async with mpi.job(["./a"], name="a") as job:
        api.stored["a"] = stored("a", state="Succeeded")
        api.all_pods, api.logs = [pod("a-launcher-x", role="launcher")], {"a-launcher-x": [b"1 hello\n"]}
        assert [line async for line in job.logs()] == ["hello"]
        assert job.status.state == "Succeeded"
    assert "a" not in api.stored


async def test_waiting_holds_no_thread() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    api = FakeApi(stored("a", state="Running"), stored("b", state="Running"))
    mpi = AsyncMPI(api=api)
    reported: list[str] = []
    waits = [asyncio.create_task(job.wait(report=reported.append)) for job in await mpi.jobs()]
    await asyncio.sleep(5)
    assert (await mpi.get("b")).status.state == "Running"
    api.stored = {"a": stored("a", state="Succeeded"), "b": stored("b", state="Failed")}
    assert (await waits[0]).has_succeeded
    with pytest.raises(JobFailed, match="job b failed: MPIJobFailed"):
        await waits[1]
    assert sorted(reported) == ["failed", "running: 0/2 workers", "running: 0/2 workers", "succeeded"]


async def test_a_wait_ends_when_it_is_cancelled_or_takes_too_long() -> None:
    job = await AsyncMPI(api=FakeApi(stored(state="Running"))).get("pi")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(job.wait(), 60)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(JobTimeoutError, match="job pi has not ended within 60 s: running: 0/2 workers"):
        await job.wait(timeout=60)
    assert asyncio.get_running_loop().time() - begun == pytest.approx(60, abs=1)


class Stuck(FakeApi):
    """A followed log brings one line, and nothing more until it is released."""

    def __init__(self) -> None:
        super().__init__(stored(state="Running"))
        self.all_pods = [pod("pi-launcher-a", role="launcher")]
        self.released = threading.Event()

    def read_log(self, pod: str, container: str, options: LogOptions) -> Iterator[bytes]:
        self.requests.append(("log", pod, container, options))
        yield b"2026-11-25T12:00:00.1Z one\n"
        self.released.wait(10)
        raise UnreachableError("cut")


@pytest.mark.real_time
async def test_a_log_has_a_thread_of_its_own_that_ends_with_the_iteration() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    api = Stuck()
    job = await AsyncMPI(api=api).get("pi")
    async with asyncio.timeout(5):
        streams = [job.logs(follow=True) for _ in range(3)]
        assert [await anext(lines) for lines in streams] == ["one"] * 3
        assert (await job.refresh()).state == "Running"
    readers = [thread for thread in threading.enumerate() if thread.name == "log of pi"]
    for lines in streams:
        await lines.aclose()
    api.released.set()
    for thread in readers:
        thread.join(5)
    assert [thread.is_alive() for thread in readers] == [False] * 3


@pytest.mark.real_time
async def test_a_long_log_waits_for_its_reader_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    uncaught = list[object]()
    monkeypatch.setattr(threading, "excepthook", uncaught.append)
    api = FakeApi(stored(state="Succeeded"))
    api.all_pods, api.logs = [pod("launcher", role="launcher")], {"launcher": [b"1 line\n"] * 5000}
    lines = (await AsyncMPI(api=api).get("pi")).logs()
    assert await anext(lines) == "line"
    [reader] = [thread for thread in threading.enumerate() if thread.name == "log of pi"]
    while len(api.logs["launcher"]) > 4000:  # it reads as far as it may  # noqa: ASYNC110 - of a thread
        await asyncio.sleep(0.01)
    await lines.aclose()
    await asyncio.to_thread(reader.join, 10)
    assert (reader.is_alive(), uncaught) == (False, [])
    assert len(api.logs["launcher"]) > 3000


@pytest.mark.real_time
async def test_what_goes_wrong_with_a_log_reaches_its_reader() -> None:
    api = FakeApi(stored(state="Running"))
    job = await AsyncMPI(api=api).get("pi")
    api.stored.clear()
    with pytest.raises(JobFailed, match="somebody deleted it"):
        [line async for line in job.logs(follow=True)]


@pytest.mark.real_time
async def test_a_function_returns_its_results() -> None:
    api, reported = Ranks(printed([pickle.dumps(42)])), list[str]()
    assert await AsyncMPI(api=api, image="i").run(lambda: 42, report=reported.append) == [42]
    assert (reported, api.stored) == (["succeeded"], {})


@pytest.mark.real_time
async def test_a_job_is_deleted_when_the_call_is_cancelled_while_it_is_created() -> None:
    api, began, may_end = FakeApi(), threading.Event(), threading.Event()

    def step(create: Callable[..., Any], *args: Any, **options: Any) -> Any:
        began.set()
        may_end.wait(10)
        return create(*args, **options)

    api.create_job = partial(step, api.create_job)  # type: ignore[method-assign]
    run = asyncio.create_task(AsyncMPI(api=api, image="i").run(int))
    await asyncio.to_thread(began.wait, 10)
    run.cancel()
    asyncio.get_running_loop().call_soon(may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await run
    assert [request[0] for request in api.requests] == ["create configmap", "create", "patch configmap", "delete"]


async def test_the_job_of_a_function_is_deleted_when_the_call_is_cancelled() -> None:
    api = FakeApi()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(AsyncMPI(api=api, image="i").run(lambda: 1, name="f"), 60)
    assert [request[0] for request in api.requests][-1] == "delete"
    assert api.stored == {}
