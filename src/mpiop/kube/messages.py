"""Requests as the bytes of HTTP/1.1."""

from urllib.parse import urlencode, urlsplit

import msgspec

from mpiop import __version__
from mpiop.kube.connections import Route
from mpiop.kube.request import Request

PARTIAL = "application/json;as={kind};g=meta.k8s.io;v=v1"


class Messages:
    """Renders requests to one server."""

    def __init__(self, route: Route) -> None:
        """Address the server at the end of `route`."""
        server = urlsplit(route.server)
        is_forwarded = route.proxy_url and server.scheme == "http"
        self._root = route.server if is_forwarded else server.path
        # A compressed list costs the server more processor time than the local network gains.
        self._headers = f"Host: {server.netloc}\r\nUser-Agent: mpiop/{__version__}\r\nAccept-Encoding: identity\r\n"
        if is_forwarded:
            self._headers += route.proxy_authorization

    def message(self, request: Request, token: str) -> bytes:
        """Return `request`, whole, with the bearer token `token` if there is one."""
        query = f"?{urlencode(request.params)}" if request.params else ""
        head = f"{request.method} {self._root}{request.path}{query} HTTP/1.1\r\n{self._headers}Accept: {_accepted(request)}\r\n"
        if token:
            head += f"Authorization: Bearer {token}\r\n"
        if request.body is None:
            return f"{head}\r\n".encode()
        body = msgspec.json.encode(request.body)
        kind = "application/merge-patch+json" if request.method == "PATCH" else "application/json"
        return f"{head}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _accepted(request: Request) -> str:
    if not request.metadata_only:
        return "application/json"
    return PARTIAL.format(kind="PartialObjectMetadataList" if request.verb == "list" else "PartialObjectMetadata")
