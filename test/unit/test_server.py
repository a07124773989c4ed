"""The HTTP server: health and readiness with reasons, metrics, and a clear word when a port is taken."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest

from fakes.http_server import free_port, listening
from mpiop.metrics import Metrics
from mpiop.server import Check, Handler, Server, ServerError, health, scrape

pytestmark = pytest.mark.real_time


@contextlib.asynccontextmanager
async def serving(routes: Mapping[str, Handler]) -> AsyncIterator[str]:
    async with listening(Server("127.0.0.1", 0, routes)) as port:
        yield f"http://127.0.0.1:{port}"


async def fetch(url: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.text()


CASES = [
    pytest.param({}, "", 200, "ok", id="nothing to check"),
    pytest.param({"elector": list}, "", 200, "ok", id="all is well"),
    pytest.param({"elector": list}, "?verbose", 200, "[+] elector ok\n/z passed\n", id="all is well, verbose"),
    pytest.param(
        {"elector": list, "informers": lambda: ["pods not synced", "jobs not synced"]},
        "",
        503,
        "[+] elector ok\n[-] informers: pods not synced; jobs not synced\n/z failed\n",
        id="one check fails: it says which and why",
    ),
]


@pytest.mark.parametrize(("checks", "query", "status", "text"), CASES)
async def test_a_probe_says_what_is_wrong(checks: Mapping[str, Check], query: str, status: int, text: str) -> None:
    async with serving({"/z": health(checks)}) as url:
        assert await fetch(f"{url}/z{query}") == (status, text)


async def test_checks_are_asked_anew_each_time() -> None:
    problems = ["pods not synced"]
    async with serving({"/readyz": health({"informers": lambda: problems})}) as url:
        assert (await fetch(f"{url}/readyz"))[0] == 503
        problems.clear()
        assert (await fetch(f"{url}/readyz"))[0] == 200


async def test_metrics_are_scraped() -> None:
    metrics = Metrics(version="1")
    metrics.jobs_created.inc(3)
    async with serving({"/metrics": scrape(metrics)}) as url:
        status, text = await fetch(f"{url}/metrics")
        assert status == 200
        assert "mpi_operator_jobs_created_total 3.0\n" in text
        async with aiohttp.ClientSession(auto_decompress=False) as session, session.get(f"{url}/metrics") as response:
            assert response.headers["Content-Encoding"] in {"gzip", "deflate"}
            assert response.headers["Content-Type"].startswith("text/plain; version=")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_crowd_of_scrapes_is_given_what_was_rendered_for_one(encoding: str) -> None:
    metrics, renderings = Metrics(version="1"), 0

    def count() -> Mapping[str, int]:
        nonlocal renderings
        renderings += 1
        return {}

    metrics.watch_jobs(count)
    before = renderings
    async with serving({"/metrics": scrape(metrics)}) as url, aiohttp.ClientSession(headers={"Accept-Encoding": encoding}) as session:
        answers = await asyncio.gather(*(session.get(f"{url}/metrics") for _ in range(20)))
        texts = {await answer.text() for answer in answers}
        assert [answer.status for answer in answers] == [200] * 20
    assert len(texts) == 1
    assert renderings - before <= 2, "a second one if the first second is over"


async def test_other_paths_and_methods_are_refused() -> None:
    async with serving({"/healthz": health({})}) as url:
        assert (await fetch(f"{url}/secrets"))[0] == 404
        async with aiohttp.ClientSession() as session, session.post(f"{url}/healthz") as response:
            assert response.status == 405


async def test_a_taken_port_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = Server("127.0.0.1", port, {"/readyz": health({}), "/healthz": health({})})
        desired = f"cannot serve /healthz, /readyz on port {port}: another process listens there; choose another port by its flag"
        with pytest.raises(ServerError, match=desired):
            await server.run()


async def test_an_address_that_is_not_ours_is_a_clear_error() -> None:
    with pytest.raises(ServerError, match=r"cannot serve /healthz on port \d+: "):
        await Server("192.0.2.1", 18080, {"/healthz": health({})}).listen()


async def test_it_serves_until_it_is_cancelled_and_then_lets_the_port_go() -> None:
    port = free_port()
    running = asyncio.create_task(Server("127.0.0.1", port, {"/healthz": health({})}).run())
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                assert await fetch(f"http://127.0.0.1:{port}/healthz") == (200, "ok")
                break
            await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again = Server("127.0.0.1", port, {"/healthz": health({})})
    assert await again.listen() == port
    await again.close()


async def test_every_address_of_the_host_is_served() -> None:
    port = free_port()
    async with listening(Server("", port, {"/healthz": health({})})):
        for host in ("127.0.0.1", "127.0.0.2", "localhost"):
            assert await fetch(f"http://{host}:{port}/healthz") == (200, "ok")
