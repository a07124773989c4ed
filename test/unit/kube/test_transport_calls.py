"""Calls over real connections: what is sent, what is sent again, and when it is given up (T3, F8-F15, F52)."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fakes.http_server import Exchange
from mpiop import __version__
from mpiop.kube.client import Client
from mpiop.kube.errors import CalledOffError, StatusError, TooLargeError, TransportError
from mpiop.kube.objects import Key
from mpiop.kube.resources import CONFIG_MAPS, LEASES, MPIJOBS, PODS, Selection

pytestmark = pytest.mark.real_time

POD = Key("default", "a")
BODY: Any = {"metadata": {"name": "a", "namespace": "default"}}
WRITES: dict[str, Callable[[Client], Coroutine[Any, Any, Any]]] = {
    "create": lambda client: client.create(PODS, BODY),
    "patch": lambda client: client.patch(PODS, POD, BODY),
    "update": lambda client: client.update(PODS, BODY),
    "delete": lambda client: client.delete(PODS, POD, uid="u"),
}


class Script:
    """Answers each request by the next step; the last one continues for ever."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)

    async def __call__(self, exchange: Exchange) -> None:
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        await step(exchange)


def answering(body: Any, status: int = 200, **headers: str) -> Any:
    async def step(exchange: Exchange) -> None:
        await exchange.answer(body, status, **headers)

    return step


answer = answering({"kind": "Thing", "metadata": {"name": "a"}})


async def reset(exchange: Exchange) -> None:
    exchange.reset()


async def close(exchange: Exchange) -> None:
    exchange.close()


async def hang(exchange: Exchange) -> None:
    del exchange
    await asyncio.Event().wait()


def refuse(status: int, **headers: str) -> Any:
    async def step(exchange: Exchange) -> None:
        await exchange.refuse(status, "Reason", "not now", **headers)

    return step


async def test_warnings_of_an_answer_are_passed_on(bench: Any) -> None:
    warn = answering({"kind": "Pod", "metadata": {"name": "a"}}, Warning='299 - "unknown field \\"spec.x\\""')
    client = await bench.client(await bench.serve(warn))
    warnings: list[str] = []
    await client.create(PODS, BODY, warn=warnings.append)
    assert warnings == ['unknown field "spec.x"']


async def test_what_is_sent(bench: Any) -> None:
    server, client = await bench.connect(answer, config={"token": "one"})
    await client.get(PODS, POD)
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "π"}})
    await client.patch(MPIJOBS, POD, {"status": {}}, subresource="status")
    await client.update(LEASES, BODY)
    await client.delete(PODS, POD, uid="u")
    assert [(exchange.method, exchange.path, exchange.headers.get("content-type")) for exchange in server.exchanges] == [
        ("GET", "/api/v1/namespaces/default/pods/a", None),
        ("POST", "/api/v1/namespaces/default/configmaps", "application/json"),
        ("PATCH", "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/a/status", "application/merge-patch+json"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", "application/json"),
        ("DELETE", "/api/v1/namespaces/default/pods/a", "application/json"),
    ]
    assert server.exchanges[1].body["data"] == {"x": "π"}
    assert server.exchanges[4].body["preconditions"] == {"uid": "u"}
    assert server.exchanges[4].body["propagationPolicy"] == "Background"
    for exchange in server.exchanges:
        assert exchange.headers["user-agent"] == f"mpiop/{__version__}"
        assert exchange.headers["authorization"] == "Bearer one"
        is_partial = exchange.method == "DELETE"
        assert exchange.headers["accept"] == "application/json" + is_partial * ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        assert exchange.headers["accept-encoding"] == "identity"
    assert server.connections == 1
    verbs = [("get", "pods"), ("create", "configmaps"), ("patch", "mpijobs"), ("update", "leases"), ("delete", "pods")]
    assert bench.observed == [(verb, resource, 200) for verb, resource in verbs]


async def test_metadata_alone_is_asked_for(bench: Any) -> None:
    server, client = await bench.connect(answering({"kind": "PartialObjectMetadataList", "metadata": {}, "items": None}))
    found = await client.list_page(Selection(PODS, "n", "a in (b,c)", "x=y", metadata_only=True), resource_version="0", limit=5)
    assert list(found["items"]) == []
    assert server.exchanges[0].headers["accept"] == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert server.exchanges[0].query == {"labelSelector": "a in (b,c)", "fieldSelector": "x=y", "resourceVersion": "0", "limit": "5"}


async def test_F8_a_refusal_without_retry_after_is_reported_at_once(bench: Any) -> None:
    server, client = await bench.connect(refuse(503))
    with pytest.raises(StatusError, match="get pods default/a: 503 Reason: not now"):
        await client.get(PODS, POD)
    assert len(server.exchanges) == 1


async def test_T3_F9_retry_after_is_obeyed_for_writes_too(bench: Any) -> None:
    server, client = await bench.connect(Script(refuse(429, Retry_After="1"), refuse(503, Retry_After="0"), answer))
    begun = asyncio.get_running_loop().time()
    await client.create(PODS, BODY)
    assert asyncio.get_running_loop().time() - begun >= 1
    assert [exchange.body["metadata"]["name"] for exchange in server.exchanges] == ["a", "a", "a"]
    assert [code for _, _, code in bench.observed] == [429, 503, 200]


async def test_T3_ten_retries_are_the_most(bench: Any) -> None:
    server, client = await bench.connect(refuse(429, Retry_After="0"))
    with pytest.raises(StatusError) as caught:
        await client.get(PODS, POD)
    assert caught.value.code == 429
    assert len(server.exchanges) == 11


async def test_T3_a_wait_beyond_the_deadline_is_not_begun(bench: Any) -> None:
    client = await bench.client(await bench.serve(refuse(429, Retry_After="30")))
    async with asyncio.timeout(5):
        with pytest.raises(StatusError) as caught:
            await client.get(PODS, POD)
    assert caught.value.retry_after_seconds == 30


def allowing(times: int) -> Callable[[], None]:
    """Return a guard that allows so many requests."""
    left = iter(range(times))

    def fencing() -> None:
        if next(left, None) is None:
            raise CalledOffError("not any more")

    return fencing


async def test_L64_F42_a_write_is_called_off_before_it_is_sent(bench: Any) -> None:
    server = await bench.serve(answer)
    client = (await bench.client(server)).fenced(allowing(0))
    for write in WRITES.values():
        with pytest.raises(CalledOffError):
            await write(client)
    await client.get(PODS, POD)
    assert [exchange.method for exchange in server.exchanges] == ["GET"]


async def test_L64_T3_a_write_that_is_to_be_sent_again_is_called_off_meanwhile(bench: Any) -> None:
    server = await bench.serve(Script(refuse(429, Retry_After="0"), answer))
    client = (await bench.client(server)).fenced(allowing(1))
    with pytest.raises(CalledOffError):
        await client.create(PODS, BODY)
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("broken", [reset, close])
async def test_T3_a_read_survives_a_dropped_connection(bench: Any, broken: Any) -> None:
    server, client = await bench.connect(Script(answer, broken, broken, answer))
    await client.get(PODS, POD)
    await client.get(PODS, POD)
    assert len(server.exchanges) == 4


@pytest.mark.parametrize("broken", [reset, close])
@pytest.mark.parametrize("verb", WRITES)
async def test_T3_F12_a_write_is_sent_once_even_on_a_kept_connection_that_is_dead(bench: Any, broken: Any, verb: str) -> None:
    server, client = await bench.connect(Script(answer, broken, answer))
    await client.get(PODS, POD)
    with pytest.raises(TransportError, match=f"^{verb} pods default/a: connection broken before an answer"):
        await WRITES[verb](client)
    assert len(server.exchanges) == 2
    assert bench.observed[-1] == (verb, "pods", 0)
    await client.get(PODS, POD)


async def test_F10_a_request_that_hangs_ends_with_the_deadline(bench: Any) -> None:
    client = await bench.client(await bench.serve(Script(hang, answer)), deadline_seconds=0.2)
    with pytest.raises(TransportError, match=r"^get pods default/a: no answer within 0\.2 s$"):
        await client.get(PODS, POD)
    assert bench.observed == [("get", "pods", 0)]
    await client.get(PODS, POD)


async def test_F34_a_connection_that_is_made_too_late_carries_no_write(bench: Any) -> None:
    server, client = await bench.connect(answer, connect_seconds=0.2)
    write = asyncio.ensure_future(client.delete(PODS, POD, uid="1"))
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251 - the event loop is blocked on purpose
    with pytest.raises(TransportError, match="Connection timeout"):
        await write
    assert server.exchanges == []


async def test_F34_a_write_whose_connection_was_made_after_the_lease_is_called_off(bench: Any) -> None:
    def fencing() -> None:
        if time.monotonic() > until:
            raise CalledOffError("the lease is over")

    server = await bench.serve(answer)
    client = (await bench.client(server)).fenced(fencing)
    until = time.monotonic() + 0.2
    write = asyncio.ensure_future(client.delete(PODS, POD, uid="1"))
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251 - the event loop is blocked on purpose
    with pytest.raises(CalledOffError):
        await write
    assert server.exchanges == []


async def test_F10_a_body_that_trickles_ends_with_the_deadline(bench: Any) -> None:
    async def trickle(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for _ in range(1000):
            await exchange.chunk(b" ")
            await asyncio.sleep(0.05)

    client = await bench.client(await bench.serve(trickle), deadline_seconds=0.3)
    with pytest.raises(TransportError, match="no answer within"):
        await client.get(PODS, POD)


async def test_a_list_may_take_longer_than_other_calls_but_not_be_idle_for_long(bench: Any) -> None:
    async def slow(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for part in (b'{"metadata":{},', b'"items":', b"[", b"]", b"}"):
            await asyncio.sleep(0.1)
            await exchange.chunk(part)
        await exchange.chunk(b"")

    client = await bench.client(await bench.serve(Script(slow, hang)), deadline_seconds=0.3)
    assert (await client.list_page(Selection(PODS), resource_version="0"))["metadata"] == {}
    async with asyncio.timeout(5):
        with pytest.raises(TransportError, match=r"^list pods: "):
            await client.list_page(Selection(PODS), resource_version="0")


async def test_F15_a_cut_body_is_a_transport_error(bench: Any) -> None:
    async def cut(exchange: Exchange) -> None:
        await exchange.send(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"kind":')
        exchange.close()

    server, client = await bench.connect(cut)
    with pytest.raises(TransportError, match=r"^list pods: "):
        await client.list_page(Selection(PODS), resource_version="0")
    assert len(server.exchanges) == 1


@pytest.mark.parametrize("garbage", [b"HTTP/9 what\r\n\r\n", b"\x15\x03\x01", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
async def test_F15_what_is_not_http_is_a_transport_error(bench: Any, garbage: bytes) -> None:
    async def nonsense(exchange: Exchange) -> None:
        await exchange.send(garbage)
        exchange.close()

    client = await bench.client(await bench.serve(nonsense))
    with pytest.raises(TransportError, match=r"^create pods default/a: "):
        await client.create(PODS, BODY)


async def test_of_an_answer_that_is_too_large_no_more_is_read_than_the_limit(bench: Any) -> None:
    sent = 0

    async def endless(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.begin_stream()
        while not exchange.writer.is_closing():
            await exchange.chunk(bytes(1024 * 1024))
            await asyncio.sleep(0)  # over TLS, a write to a client that has gone returns at once, and nobody else gets a turn
            sent += 1

    client = await bench.client(await bench.serve(endless))
    with pytest.raises(TooLargeError, match=r"^list pods: the answer has more than 33554432 bytes"):
        await client.list_page(Selection(PODS), resource_version="0")
    assert 32 <= sent <= 48


async def test_a_table_is_no_list(bench: Any) -> None:
    client = await bench.client(await bench.serve(answering({"kind": "Table", "metadata": {}, "rows": []})))
    with pytest.raises(TransportError, match="list pods: the answer is a Table, not a list"):
        await client.list_page(Selection(PODS), resource_version="0")


async def test_F1_a_refused_connection_says_where(bench: Any) -> None:
    server, client = await bench.connect(answer)
    server.url = "https://127.0.0.1:1"
    nowhere = await bench.client(server)
    with pytest.raises(TransportError, match=r"^get pods default/a: no connection to 127\.0\.0\.1:1: ConnectionRefusedError: "):
        await nowhere.get(PODS, POD)
    await client.close()
    with pytest.raises(TransportError, match="the client was closed"):
        await client.get(PODS, POD)


async def test_F52_the_environment_names_no_proxy_and_no_password(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = bench.directory / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NETRC", str(netrc))
    server, client = await bench.connect(answer, config={"token": "one"})
    await client.get(PODS, POD)
    assert server.exchanges[0].headers["authorization"] == "Bearer one"


async def test_redirects_are_not_followed(bench: Any) -> None:
    server = await bench.serve(answer)
    server.handler = answering(b"", 307, Location=f"{server.url}/other")
    client = await bench.client(server, config={"token": "one"})
    with pytest.raises(StatusError) as caught:
        await client.get(PODS, POD)
    assert caught.value.code == 307
    assert len(server.exchanges) == 1


async def test_a_body_of_megabytes_goes_through(bench: Any) -> None:
    server, client = await bench.connect(answer)
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "y" * 3_000_000}})
    assert len(server.exchanges[0].body["data"]["x"]) == 3_000_000


async def test_F9_F18_leases_do_not_wait_for_other_calls(bench: Any) -> None:
    async def slow_but_for_leases(exchange: Exchange) -> None:
        if "/leases/" not in exchange.path:
            await asyncio.sleep(0.5)
        await answer(exchange)

    client = await bench.client(await bench.serve(slow_but_for_leases), most_in_flight=2, qps=1.0, burst=1)
    leases = client.separate(deadline_seconds=0.4)
    calls = [asyncio.create_task(client.get(PODS, POD)) for _ in range(3)]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(1):  # the rate limit of one a second is for the others
        for _ in range(5):
            await leases.get(LEASES, POD)
    with pytest.raises(TransportError, match=r"no answer within 0\.4 s"):
        await leases.get(PODS, POD)
    await asyncio.gather(*calls)


async def test_F18_waiting_for_a_place_is_not_part_of_the_deadline(bench: Any) -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.4)
        await answer(exchange)

    server, client = await bench.connect(slow, most_in_flight=2, deadline_seconds=1.5)
    await asyncio.gather(*(client.get(PODS, POD) for _ in range(10)))
    assert server.connections == 2
