"""Who may read a path: callers whose bearer token the API server knows, and whom its rules let `get` that path.

Two questions, as every secured component of Kubernetes asks them: TokenReview (who is this?) and SubjectAccessReview (may they?).
The answers are remembered for a while, so that a scrape each 15 s costs the API server two requests a minute.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import structlog
from aiohttp import web

from mpiop.kube.client import Client
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Object
from mpiop.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from mpiop.server.serving import Handler

YES_SECONDS = 60.0
"""A right that was taken away, or a token that was revoked, counts for at most so long."""
NO_SECONDS = 10.0
"""A right that was given counts after at most so long."""
MOST_REMEMBERED = 256
MOST_ASKING = 64
"""Reviews under way; they outlive the connections of those who asked."""

_BEARER = re.compile(r"bearer +([!-~]+)", re.IGNORECASE)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a caller: 200 if access is allowed; `text` explains any other status."""

    status: HTTPStatus
    text: str = ""

    @property
    def seconds(self) -> float:
        """Return the seconds to cache it; 0 if the API server did not answer."""
        if self.status is HTTPStatus.OK:
            return YES_SECONDS
        return NO_SECONDS if self.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} else 0.0


NO_TOKEN = Verdict(HTTPStatus.UNAUTHORIZED, "a bearer token is needed: send the header `Authorization: Bearer <token>` once")
UNKNOWN_TOKEN = Verdict(
    HTTPStatus.UNAUTHORIZED, "the API server does not know this bearer token: it is wrong, has expired or is for another audience"
)
NO_ANSWER = Verdict(
    HTTPStatus.SERVICE_UNAVAILABLE, "the API server could not check your identity and permissions; retry, and see the operator's log"
)
BUSY = Verdict(HTTPStatus.SERVICE_UNAVAILABLE, "too many callers are being reviewed: try again")
NOT_ALLOWED_TO_ASK = Verdict(
    HTTPStatus.INTERNAL_SERVER_ERROR,
    "the operator may not ask the API server who you are: its ServiceAccount lacks the right to create TokenReviews and"
    " SubjectAccessReviews, which the ClusterRole mpi-operator-metrics-auth gives",
)


class Access:
    """Judges bearer tokens for one path; tokens are remembered as their SHA-256 only."""

    def __init__(self, client: Client, path: str) -> None:
        """Ask by `client` about `path`, for example `/metrics`."""
        self._client = client
        self._path = path
        self._remembered: dict[bytes, tuple[float, Verdict]] = {}
        self._asking: dict[bytes, asyncio.Task[Verdict]] = {}

    async def verdict(self, token: str) -> Verdict:
        """Return the answer for `token` (printable ASCII), from the cache or by one review for all concurrent callers."""
        digest = hashlib.sha256(token.encode()).digest()
        until, known = self._remembered.get(digest, (0.0, NO_TOKEN))
        if asyncio.get_running_loop().time() < until:
            return known
        if digest not in self._asking and len(self._asking) >= MOST_ASKING:
            return BUSY
        if digest not in self._asking:
            self._asking[digest] = asking = asyncio.create_task(self._ask(digest, token), name="access review")
            asking.add_done_callback(lambda _: self._asking.pop(digest))
        # One who waits may go; the others still want to know.
        return await asyncio.shield(self._asking[digest])

    async def _ask(self, digest: bytes, token: str) -> Verdict:
        try:
            verdict = await self._review(token)
        except KubeError as error:
            verdict = NOT_ALLOWED_TO_ASK if isinstance(error, StatusError) and error.is_forbidden else NO_ANSWER
            # What is quoted of an answer that is none begins with a brace, and a TokenReview repeats the token.
            _log.warning("scrape not judged", path=self._path, error=str(error).partition("{")[0])
        self._remembered.pop(digest, None)
        if verdict.seconds:
            if len(self._remembered) >= MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[digest] = (asyncio.get_running_loop().time() + verdict.seconds, verdict)
        return verdict

    async def _review(self, token: str) -> Verdict:
        found = await self._create(TOKEN_REVIEWS, {"token": token})
        if found.get("authenticated") is not True:
            return UNKNOWN_TOKEN
        user = cast("Mapping[str, Any]", found.get("user") or {})
        name = str(user.get("username") or "")
        caller = {key: user[key] for key in ("uid", "groups", "extra") if user.get(key)}
        wish = {"user": name, **caller, "nonResourceAttributes": {"path": self._path, "verb": "get"}}
        allowed = await self._create(SUBJECT_ACCESS_REVIEWS, wish)
        if allowed.get("allowed") is True:
            return Verdict(HTTPStatus.OK)
        _log.warning("scrape refused", path=self._path, user=name, reason=str(allowed.get("reason") or ""))
        text = (
            f"{name} may not get {self._path}: bind a ClusterRole with the verb `get` on the nonResourceURL {self._path},"
            " such as mpi-operator-metrics-reader, to it"
        )
        return Verdict(HTTPStatus.FORBIDDEN, text)

    async def _create(self, resource: Resource, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have a review made, which is answered and not stored, and return its status."""
        body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": dict(spec)}
        return (await self._client.create(resource, body)).get("status") or {}


def authorized(access: Access, handler: Handler) -> Handler:
    """Return a handler that lets through to `handler` whom `access` allows, and answers 401, 403, 500 or 503 with a sentence to others."""

    async def answer(request: web.Request) -> web.Response:
        [token, *others] = [_BEARER.fullmatch(value) for value in request.headers.getall("Authorization", ["none"])]
        verdict = NO_TOKEN if token is None or others else await access.verdict(token[1])
        if verdict.status is HTTPStatus.OK:
            return await handler(request)
        challenge = {"WWW-Authenticate": "Bearer"} if verdict.status is HTTPStatus.UNAUTHORIZED else {}
        return web.Response(text=verdict.text + "\n", status=verdict.status, headers=challenge)

    return answer
