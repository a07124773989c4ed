"""The API server in memory as a REST API over HTTP, for an operator in a process of its own; its MPIJobs may be large.

A specification of `{"large": NAME}` is sent as the JSON text of that name, so a thousand large jobs take no memory here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from fakes.api_server import BUILT_IN, FakeApiServer
from fakes.http_server import Exchange, HttpServer, http_server
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key
from mpiop.kube.request import Request
from mpiop.kube.resources import Resource

_VERBS: Final = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class RestServer:
    """Answers REST requests from `api`.

    Attributes:
        api: Where objects are.
        large: The JSON texts of large specs, by name.
    """

    def __init__(self, large: Mapping[str, bytes]) -> None:
        self.api = FakeApiServer()
        self.large = {name: msgspec.Raw(text) for name, text in large.items()}

    async def handle(self, exchange: Exchange) -> None:
        """Answer a request."""
        request = _request(exchange)
        try:
            if request.verb == "watch":
                await self._watch(exchange, request)
            else:
                await exchange.answer(msgspec.json.encode(self._sent(await self.api.call(request))))
        except StatusError as error:
            await exchange.refuse(error.code, error.reason, str(error))

    async def _watch(self, exchange: Exchange, request: Request) -> None:
        async with self.api.stream(request) as events:
            await exchange.begin_stream()
            with contextlib.suppress(TransportError, asyncio.CancelledError):
                async for event in events:
                    if exchange.writer.is_closing():
                        return
                    await exchange.chunk(msgspec.json.encode(self._sent(event)) + b"\n")
            await exchange.chunk(b"")

    def _sent(self, answer: Any) -> Any:
        """Return `answer` with the large specs in it."""
        if not isinstance(answer, dict):
            return answer
        if "items" in answer:
            return {**answer, "items": [self._sent(item) for item in answer["items"]]}
        if "object" in answer:
            return {**answer, "object": self._sent(answer["object"])}
        name = (answer.get("spec") or {}).get("large")
        return answer if name is None else {**answer, "spec": self.large[name]}


@contextlib.asynccontextmanager
async def rest_server(large: Mapping[str, bytes]) -> AsyncIterator[tuple[RestServer, HttpServer]]:
    """Serve on a free port of loopback."""
    server = RestServer(large)
    async with http_server(server.handle) as http:
        yield server, http


def _request(exchange: Exchange) -> Request:
    """Return the request of a URL: `/api/v1/namespaces/NAMESPACE/pods/NAME/status`."""
    words = exchange.path.strip("/").split("/")
    group, version, rest = ("", words[1], words[2:]) if words[0] == "api" else (words[1], words[2], words[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    known = (resource for resource in BUILT_IN if (resource.group, resource.version, resource.plural) == (group, version, plural))
    resource = next(known, Resource(group, version, plural, ""))
    query = exchange.query
    verb = _VERBS[exchange.method]
    if verb == "get" and not name:
        verb = "discover" if not plural else "watch" if query.get("watch") == "true" else "list"
    is_partial = "PartialObjectMetadata" in exchange.headers.get("accept", "")
    body = exchange.body
    if verb == "create" and namespace:
        body = {**body, "metadata": {"namespace": namespace, **body["metadata"]}}
    return Request(verb, resource, Key(namespace, name), subresource, params=query, body=body, metadata_only=is_partial)
