"""Secure metrics: who is let in, what the others get, and how seldom the API server is asked."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import structlog
from multidict import CIMultiDict

from fakes.api_server import FakeClient
from fakes.http_server import listening
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Object
from mpiop.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from mpiop.metrics import Metrics
from mpiop.server import Access, Server, authorized, scrape, serving_context
from mpiop.server.access import BUSY, MOST_ASKING, MOST_REMEMBERED, NO_SECONDS, YES_SECONDS, Verdict
from virtual_time import VirtualClock, run_ready_tasks

PROMETHEUS: dict[str, Any] = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "1",
    "groups": ["system:serviceaccounts", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["prometheus-0"]},
}
JANE = {"username": "jane"}


def introduce(client: FakeClient) -> None:
    """Let the server know Prometheus, which may get /metrics, and Jane."""
    client.server.reviews.users |= {"of-prometheus": PROMETHEUS, "of-jane": JANE}
    client.server.reviews.allowed.add(("get", "/metrics", PROMETHEUS["username"]))


@pytest.fixture
def client() -> FakeClient:
    client = FakeClient()
    introduce(client)
    return client


@pytest.fixture
def access(client: FakeClient) -> Access:
    return Access(client, "/metrics")


def asked(client: FakeClient) -> list[str]:
    """Return the kinds of the reviews that the server was asked for, in order."""
    return [action.resource.kind for action in client.actions]


@contextlib.asynccontextmanager
async def serving(client: FakeClient) -> AsyncGenerator[str]:
    """Serve metrics over HTTPS."""
    handler = authorized(Access(client, "/metrics"), scrape(Metrics(version="1")))
    async with listening(Server("127.0.0.1", 0, {"/metrics": handler}, serving_context("", "here", VirtualClock()))) as port:
        yield f"https://127.0.0.1:{port}/metrics"


async def scraped(url: str, *authorizations: str) -> tuple[int, str, str]:
    """Return status, challenge and text of a GET with these Authorization headers."""
    headers = CIMultiDict(("Authorization", value) for value in authorizations)
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as response:
        return response.status, response.headers.get("WWW-Authenticate", ""), await response.text()


TWO_REVIEWS = ["TokenReview", "SubjectAccessReview"]
CALLERS = [
    pytest.param(["Bearer of-prometheus"], 200, "mpi_operator_jobs_created_total", TWO_REVIEWS, id="who may, gets metrics"),
    pytest.param(["bearer  of-prometheus"], 200, "mpi_operator_jobs_created_total", TWO_REVIEWS, id="the scheme's case does not count"),
    pytest.param(
        ["Bearer of-jane"],
        403,
        "jane may not get /metrics: bind a ClusterRole with the verb `get` on the nonResourceURL /metrics",
        TWO_REVIEWS,
        id="who may not, is told which rule is missing",
    ),
    pytest.param(["Bearer of-nobody"], 401, "the API server does not know this bearer token", ["TokenReview"], id="an unknown token"),
    pytest.param([], 401, "a bearer token is needed", [], id="no token"),
    pytest.param(["Basic b2Y6amFuZQ=="], 401, "a bearer token is needed", [], id="another scheme"),
    pytest.param(["Bearer"], 401, "a bearer token is needed", [], id="no token after the scheme"),
    pytest.param(["Bearer of prometheus"], 401, "a bearer token is needed", [], id="two words"),
    pytest.param(["Bearer of-prometheüs"], 401, "a bearer token is needed", [], id="not ASCII"),
    pytest.param(["Bearer of-prometheus", "Bearer of-jane"], 401, "a bearer token is needed", [], id="two headers"),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("authorizations", "status", "text", "reviews"), CALLERS)
async def test_metrics_are_for_whom_the_api_server_lets_get_them(
    client: FakeClient, authorizations: list[str], status: int, text: str, reviews: list[str]
) -> None:
    async with serving(client) as url:
        answer = await scraped(url, *authorizations)
    assert (answer[0], answer[1]) == (status, "Bearer" if status == 401 else "")
    assert text in answer[2]
    assert ("mpi_operator_jobs_created_total" in answer[2]) == (status == 200)
    assert asked(client) == reviews


@pytest.mark.real_time
async def test_plain_http_gets_nothing(client: FakeClient) -> None:
    async with serving(client) as url:
        with pytest.raises(aiohttp.ClientError):
            await scraped(url.replace("https", "http"), "Bearer of-prometheus")


FAILURES = [
    pytest.param(TransportError("create tokenreviews: no answer within 4 s"), 503, "could not check your identity", id="no answer"),
    pytest.param(StatusError("create tokenreviews", {"code": 503}), 503, "could not check your identity", id="an API server in trouble"),
    pytest.param(StatusError("create tokenreviews", {"code": 401}), 503, "could not check your identity", id="our own token is not taken"),
    pytest.param(
        StatusError("create tokenreviews", {"code": 403, "reason": "Forbidden"}),
        500,
        "which the ClusterRole mpi-operator-metrics-auth gives",
        id="we may not ask: it says which role gives the right",
    ),
]


@pytest.mark.real_time
@pytest.mark.parametrize("resource", [TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS], ids=lambda resource: resource.kind)
@pytest.mark.parametrize(("error", "status", "text"), FAILURES)
async def test_without_an_answer_of_the_api_server_nobody_is_let_in_and_it_is_asked_again_next_time(
    client: FakeClient, error: KubeError, status: int, text: str, resource: Resource
) -> None:
    client.refuse("create", resource, "", error, times=1)
    async with serving(client) as url:
        reported = await scraped(url, "Bearer of-prometheus")
        assert (reported[0], text in reported[2]) == (status, True)
        assert (await scraped(url, "Bearer of-prometheus"))[0] == 200


async def test_all_that_is_known_of_the_user_is_passed_on(client: FakeClient, access: Access) -> None:
    await access.verdict("of-prometheus")
    await access.verdict("of-jane")
    specs = [action.body["spec"] for action in client.actions if action.body and action.resource == SUBJECT_ACCESS_REVIEWS]
    wish = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    known = {name: PROMETHEUS[name] for name in ("uid", "groups", "extra")}
    assert specs == [{"user": PROMETHEUS["username"], **known, **wish}, {"user": "jane", **wish}]


@pytest.mark.parametrize(
    ("token", "reviews", "seconds"),
    [
        pytest.param("of-prometheus", TWO_REVIEWS, YES_SECONDS, id="yes for a minute"),
        pytest.param("of-jane", TWO_REVIEWS, NO_SECONDS, id="may not: a moment"),
        pytest.param("of-nobody", ["TokenReview"], NO_SECONDS, id="not known: a moment"),
    ],
)
async def test_an_answer_is_remembered_for_a_while(
    client: FakeClient, access: Access, token: str, reviews: list[str], seconds: float
) -> None:
    first = await access.verdict(token)
    await asyncio.sleep(seconds - 0.1)
    assert await access.verdict(token) == first
    assert asked(client) == reviews
    await asyncio.sleep(0.2)
    assert await access.verdict(token) == first
    assert asked(client) == reviews * 2


async def test_a_right_that_is_given_or_taken_counts_when_the_memory_ends(client: FakeClient, access: Access) -> None:
    assert (await access.verdict("of-jane")).status == 403
    client.server.reviews.allowed.add(("get", "/metrics", "jane"))
    await asyncio.sleep(NO_SECONDS)
    assert (await access.verdict("of-jane")).status == 200
    client.server.reviews.users.clear()
    await asyncio.sleep(YES_SECONDS)
    assert (await access.verdict("of-jane")).status == 401


async def test_of_many_tokens_the_oldest_are_forgotten(client: FakeClient, access: Access) -> None:
    for number in range(MOST_REMEMBERED + 1):
        await access.verdict(f"guess-{number}")
    before = len(asked(client))
    await access.verdict(f"guess-{MOST_REMEMBERED}")
    await access.verdict("guess-1")
    assert len(asked(client)) == before
    await access.verdict("guess-0")
    assert len(asked(client)) == before + 1
    assert len(access._remembered) == MOST_REMEMBERED


async def test_a_token_that_was_asked_for_again_counts_as_new(client: FakeClient, access: Access) -> None:
    await access.verdict("again")
    await asyncio.sleep(NO_SECONDS)
    for token in (*(f"guess-{number}" for number in range(MOST_REMEMBERED - 2)), "again", "the last one", "one too many"):
        await access.verdict(token)
    before = len(asked(client))
    await access.verdict("again")
    assert len(asked(client)) == before


class SlowClient(FakeClient):
    """Answers each create after a second."""

    async def create(self, resource: Resource, body: Any) -> Any:
        await asyncio.sleep(1)
        return await super().create(resource, body)


def slow_client() -> SlowClient:
    client = SlowClient()
    introduce(client)
    return client


async def test_those_who_come_at_the_same_time_with_one_token_ask_once() -> None:
    client = slow_client()
    access = Access(client, "/metrics")
    verdicts = await asyncio.gather(*(access.verdict("of-prometheus") for _ in range(5)), access.verdict("of-jane"))
    assert [verdict.status for verdict in verdicts] == [200] * 5 + [403]
    assert len(asked(client)) == 4
    assert access._asking == {}


async def test_who_goes_while_it_is_asked_does_not_take_the_answer_along() -> None:
    access = Access(slow_client(), "/metrics")
    impatient = asyncio.create_task(access.verdict("of-prometheus"))
    patient = asyncio.create_task(access.verdict("of-prometheus"))
    await asyncio.sleep(0.5)
    impatient.cancel()
    assert await patient == Verdict(200)  # type: ignore[arg-type]  # an HTTPStatus is that number
    assert impatient.cancelled()


@pytest.mark.parametrize(
    "error",
    [
        None,
        TransportError('create tokenreviews: 200, but the answer is not a JSON object (text/plain): {"spec":{"token":"of-ja'),
        StatusError("create tokenreviews", {"code": 502, "message": '{"spec":{"token":"of-jane"}} (text/html)'}),
    ],
    ids=["refused", "an answer cut short", "a proxy's answer"],
)
async def test_no_token_is_logged_remembered_or_shown(client: FakeClient, access: Access, error: KubeError | None) -> None:
    if error:
        client.refuse("create", TOKEN_REVIEWS, "", error)
    with structlog.testing.capture_logs() as logs:
        verdict = await access.verdict("of-jane")
    assert len(logs) == 1
    assert logs[0]["event"] == ("scrape not judged" if error else "scrape refused")
    assert "of-ja" not in f"{logs}{verdict}{vars(access)}"
    assert ("create tokenreviews" in str(logs)) == bool(error)


class SilentClient(FakeClient):
    """A client whose server does not answer."""

    async def create(self, resource: Resource, obj: Object, **how: Any) -> Object:
        del resource, obj, how
        return await asyncio.get_running_loop().create_future()


async def test_no_more_callers_are_reviewed_at_a_time_than_the_operator_has_room_for() -> None:
    access = Access(SilentClient(), "/metrics")
    asking = [asyncio.create_task(access.verdict(f"token-{number}")) for number in range(MOST_ASKING)]
    await run_ready_tasks()
    assert await access.verdict("one-more") == BUSY
    for each in asking:
        each.cancel()
