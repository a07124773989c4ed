"""The fault proxy against a small server on loopback, driven by the operator's own client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec
import pytest

from fakes.certificates import Authority
from fakes.http_server import Exchange, http_server, server_context
from faults.enumeration import Act
from faults.event_faults import CUT_LINE, DUPLICATE, IDLE, cut_stream, edit_bookmark, error_event, lag
from faults.meaning import Meaning, Target, meaning_of
from faults.plans import Faults
from faults.proxy import Fault, Proxy, Upstream, fault_proxy
from faults.request_faults import CUT_BEFORE, GARBLINGS, HANG, cut_after, garble, late, refuse
from faults.stream import EventFault
from faults.time_travel import StaleServer
from mpiop.kube.client import Client
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, Object, ObjectList, WatchEvent
from mpiop.kube.resources import MPIJOBS, PODS, Selection
from mpiop.kube.tls import TLSConfig
from mpiop.kube.transport import TransportOptions, connect

NAMES = ("a", "b", "c")
POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "x", "name": "pi-worker-0"}}
STALE_PAGE: ObjectList = {"metadata": {"resourceVersion": "5"}, "items": [POD]}
CREATE = Target(Meaning("create", "pods", "", "pi-worker-0"))


class Server:
    """Answers every write with what was sent, every watch with three events and a bookmark, and every list with nothing."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        self.requests.append(f"{exchange.method} {exchange.path}")
        if "watch" in exchange.query:
            await exchange.begin_stream()
            for number, name in enumerate(NAMES, 1):
                await exchange.event("ADDED", name, resourceVersion=str(number), label="ü")
            mark = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
            await exchange.chunk(msgspec.json.encode({"type": "BOOKMARK", "object": mark}) + b"\n")
            await exchange.chunk(b"")
        elif exchange.method == "GET":
            await exchange.answer({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []})
        else:
            await exchange.answer(exchange.body, 201)


class Setting:
    """Server, proxy and client in a row."""

    def __init__(self, server: Server, proxy: Proxy, client: Client) -> None:
        self.server, self.proxy, self.client = server, proxy, client

    def inject(self, target: Target, fault: Fault | None = None, events: EventFault | None = None, times: int = 1) -> None:
        self.proxy.plan = Faults(target=target, requests=fault, events=events, times=times)

    def be_stale(self) -> StaleServer:
        """Let a server that has one Pod at version 5 answer in the server's stead."""
        stale = StaleServer(expires=False, lists={"pods": STALE_PAGE})
        self.proxy.plan = Faults(resources=frozenset({"pods"}), requests=Fault("stale", stale.act), times=9)
        return stale

    async def create(self) -> Object:
        return await self.client.create(PODS, POD)

    async def watch(self) -> tuple[list[WatchEvent], KubeError | None]:
        """Return the events that came, and what ended the stream."""
        seen: list[WatchEvent] = []
        try:
            async with self.client.watch(Selection(PODS), resource_version="", timeout_seconds=9) as events:
                async for event in events:
                    seen.append(event)  # noqa: PERF401 - those before an error count
        except KubeError as error:
            return seen, error
        return seen, None


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    authority, server = Authority(), Server()
    async with contextlib.AsyncExitStack() as stack:
        real = await stack.enter_async_context(http_server(server))
        context = server_context(authority.issue("proxy"))
        proxy = await stack.enter_async_context(fault_proxy(Upstream(real.url), Faults(), context))
        config = ClientConfig(proxy.url, tls=TLSConfig(ca_data=authority.certificate))
        client = await connect(config, TransportOptions(deadline_seconds=1.0, idle_timeout_seconds=1.0))
        stack.push_async_callback(client.close)
        yield Setting(server, proxy, client)


async def seen(is_seen: Callable[[], bool]) -> None:
    """Wait until the proxy has seen what is waited for, at most five seconds."""
    for _ in range(500):
        if is_seen():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not seen")


def names(events: list[WatchEvent]) -> list[str]:
    return [event["object"]["metadata"].get("name", "") for event in events if event["type"] == "ADDED"]


@pytest.mark.parametrize(
    ("line", "body", "text"),
    [
        ("GET /api/v1/namespaces/x/pods/a HTTP/1.1", b"", "get pods/a #1"),
        ("GET /api/v1/namespaces/x/pods?limit=5 HTTP/1.1", b"", "list pods #1"),
        ("GET /apis/batch/v1/namespaces/x/jobs?watch=true HTTP/1.1", b"", "watch jobs #1"),
        ("POST /api/v1/namespaces/x/pods HTTP/1.1", b'{"metadata": {"name": "a"}}', "create pods/a #1"),
        ("POST /api/v1/namespaces/x/events HTTP/1.1", b'{"reason": "Made"}', "create events/Made #1"),
        ("PATCH /apis/kubeflow.org/v2beta1/namespaces/x/mpijobs/pi/status HTTP/1.1", b"{}", "patch mpijobs.status/pi #1"),
        ("DELETE /api/v1/namespaces/x/pods/a HTTP/1.1", b"{}", "delete pods/a #1"),
        ("PATCH /api/v1/namespaces/x/pods/pi-launcher-x7k2p HTTP/1.1", b"{}", "patch pods/pi-launcher-pod #1"),
    ],
)
def test_a_request_is_called_by_what_it_means(line: str, body: bytes, text: str) -> None:
    target = Target(meaning_of(line, body))
    assert str(target) == text
    assert Target.parse(text) == target


async def test_without_a_fault_all_passes_and_is_traced(setting: Setting) -> None:
    assert (await setting.create())["metadata"] == POD["metadata"]
    events, error = await setting.watch()
    assert names(events) == list(NAMES)
    assert error is None
    assert list((await setting.client.list_page(Selection(PODS), resource_version=""))["items"]) == []
    assert [str(entry.target) for entry in setting.proxy.trace.entries] == [
        "create pods/pi-worker-0 #1",
        "watch pods #1",
        *(f"event pods #{n}" for n in (1, 2, 3)),
        "list pods #1",
    ]
    assert setting.proxy.trace.effects("create") == {"create pods/pi-worker-0": 1}


async def test_a_request_that_comes_before_a_watch_is_done_with_arrives_whole() -> None:
    asked = "GET /api/v1/pods{query} HTTP/1.1\r\nhost: x\r\n\r\n"
    async with http_server(Server()) as real, fault_proxy(Upstream(real.url), Faults()) as proxy:
        _, writer = await asyncio.open_connection(*proxy.url.removeprefix("http://").split(":"))
        writer.write((asked.format(query="?watch=true") + asked.format(query="")).encode())
        await seen(lambda: "list pods #1" in [str(entry.target) for entry in proxy.trace.entries])
        writer.transport.abort()


@pytest.mark.parametrize("code", [401, 403, 409, 410, 429, 500, 503])
async def test_it_answers_in_the_servers_stead(setting: Setting, code: int) -> None:
    setting.inject(CREATE, refuse(code))
    with pytest.raises(StatusError) as caught:
        await setting.create()
    assert caught.value.code == code
    assert setting.server.requests == []
    await setting.create()
    assert len(setting.server.requests) == 1


async def test_it_says_when_to_come_back(setting: Setting) -> None:
    setting.inject(CREATE, refuse(429, 0))
    await setting.create()
    assert [entry.fault for entry in setting.proxy.trace.entries] == ["429-after-0", ""]


@pytest.mark.parametrize(
    ("fault", "requests", "message"),
    [
        (CUT_BEFORE, 0, "create pods"),
        (HANG, 0, "no answer within 1 s"),
        (cut_after(reset=True), 1, "create pods"),
        (cut_after(reset=False), 1, "create pods"),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
async def test_a_write_without_an_answer_may_have_taken_effect(setting: Setting, fault: Fault, requests: int, message: str) -> None:
    setting.inject(CREATE, fault)
    with pytest.raises(TransportError, match=message):
        await setting.create()
    assert len(setting.server.requests) == requests
    assert setting.proxy.trace.effects("create").total() == requests
    assert not setting.proxy.trace.entries[0].delivered


async def test_it_sends_a_write_late(setting: Setting) -> None:
    setting.inject(CREATE, late(1.3))
    with pytest.raises(TransportError):
        await setting.create()
    assert setting.server.requests == []
    assert setting.proxy.under_way == 1
    async with asyncio.timeout(5):
        await asyncio.gather(*setting.proxy.tasks)  # the connection is cut once the write was sent
    assert len(setting.server.requests) == 1


@pytest.mark.parametrize("when", ["before", "after", "delivered"])
async def test_the_driver_acts_at_a_request(setting: Setting, when: str) -> None:
    asked: list[int] = []

    async def act(_run: object, _exchange: object) -> None:
        asked.append(len(setting.server.requests))

    run: Any = None
    setting.inject(CREATE, Act("act", act, when).on(run))
    await setting.create()
    assert asked == [0 if when == "before" else 1]


@pytest.mark.parametrize("garbling", GARBLINGS)
async def test_it_garbles_lists(setting: Setting, garbling: str) -> None:
    setting.inject(Target(Meaning("list", "pods")), garble(garbling))
    if garbling == "cut-body":  # a read whose connection broke is sent again
        setting.proxy.plan = Faults(verbs=frozenset({"list"}), requests=garble(garbling), times=99)
    with pytest.raises(KubeError):
        await setting.client.list_page(Selection(PODS), resource_version="")


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_it_cuts_a_watch_after_event_k(setting: Setting, how: Literal["close", "reset"], k: int) -> None:
    setting.inject(Target(Meaning("event", "pods"), k), events=cut_stream(how))
    events, error = await setting.watch()
    assert isinstance(error, TransportError)
    assert names(events) == list(NAMES[:k])[: len(names(events))]
    assert how == "reset" or len(names(events)) == k  # RST may overtake what was sent


@pytest.mark.parametrize(
    ("fault", "seen", "is_broken"),
    [
        (CUT_LINE, ["a"], True),
        (IDLE, ["a"], True),
        (DUPLICATE, ["a", "b", "b", "c"], False),
        (lag(0.1), ["a", "b", "c"], False),
        (error_event("error-410", code=410), ["a", "ERROR"], True),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
async def test_it_disturbs_the_second_event(setting: Setting, fault: EventFault, seen: list[str], *, is_broken: bool) -> None:
    setting.inject(Target(Meaning("event", "pods"), 2), events=fault)
    events, error = await setting.watch()
    assert [*names(events), *(event["type"] for event in events if event["type"] == "ERROR")] == seen
    assert isinstance(error, TransportError) is is_broken


@pytest.mark.parametrize(("how", "annotations"), [("none", []), ("plain", [{}]), ("false", [{"k8s.io/initial-events-end": "false"}])])
async def test_it_edits_bookmarks(setting: Setting, how: str, annotations: list[dict[str, str]]) -> None:
    setting.proxy.plan = Faults(verbs=frozenset({"bookmark"}), events=edit_bookmark(how), times=99)
    events, _ = await setting.watch()
    assert [event["object"]["metadata"].get("annotations", {}) for event in events if event["type"] == "BOOKMARK"] == annotations


async def test_it_cuts_open_watches_whether_anything_comes_or_not(setting: Setting) -> None:
    setting.inject(Target(Meaning("event", "pods"), 2), events=IDLE)
    watching = asyncio.create_task(setting.watch())
    await seen(lambda: any(entry.fault for entry in setting.proxy.trace.entries))
    setting.proxy.cut_streams({"jobs"})
    assert not watching.done()
    setting.proxy.cut_streams({"pods"})
    async with asyncio.timeout(0.5):  # before its own patience ends
        events, error = await watching
    assert names(events) == ["a"]
    assert isinstance(error, TransportError)


async def test_what_a_request_names_is_noted(setting: Setting) -> None:
    body = {"metadata": {"uid": "1", "resourceVersion": "7"}, "spec": {}}
    await setting.client.patch(PODS, Key("x", "a"), body)
    await setting.client.delete(PODS, Key("x", "a"), uid="1")
    await setting.client.list_page(Selection(PODS), resource_version="5")
    assert [entry.asked for entry in setting.proxy.trace.entries] == [
        {"uid": "1", "resourceVersion": "7"},
        {"uid": "1"},
        {"resourceVersion": "5"},
    ]
    assert setting.proxy.trace.entries[-1].answer == {"resourceVersion": "1"}


async def test_a_server_that_is_behind_lists_what_it_has(setting: Setting) -> None:
    setting.be_stale()
    pages = [await setting.client.list_page(Selection(PODS), resource_version=version) for version in ("0", "5", "")]
    assert [len(page["items"]) for page in pages] == [1, 1, 0], "the newest comes from etcd"
    with pytest.raises(StatusError) as caught:
        await setting.client.list_page(Selection(PODS), resource_version="6")
    assert caught.value.is_too_large_resource_version


async def test_a_watch_at_a_server_that_is_behind_waits_until_it_is_not(setting: Setting) -> None:
    stale = setting.be_stale()
    watching = asyncio.create_task(setting.watch())
    await seen(lambda: bool(setting.proxy.trace.entries))
    stale.has_caught_up.set()
    events, error = await watching
    assert events == []
    assert isinstance(error, TransportError)


async def test_statuses_are_kept_in_the_order_of_their_versions(setting: Setting) -> None:
    for version in ("12", "9"):
        body = {"kind": "MPIJob", "metadata": {"name": "pi", "resourceVersion": version}, "status": {"n": version}}
        await setting.client.patch(MPIJOBS, Key("x", "pi"), body, subresource="status")
    assert [status["status"]["n"] for status in setting.proxy.trace.statuses()] == ["9", "12"]
    assert setting.proxy.trace.most_in_a_second() == 2
