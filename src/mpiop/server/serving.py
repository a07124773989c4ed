"""What answers probes and scrapes: /healthz, /readyz and /metrics.

`aiohttp.web` serves them: it is loaded for the client already, and a server of our own would be one more parser of hostile input.
"""

import asyncio
import errno
import gzip
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NoReturn, cast

import structlog
from aiohttp import web

from mpiop.metrics import Metrics
from mpiop.server.listener import Listener, close_after_answer

Check = Callable[[], Sequence[str]]
"""Returns the problems, one sentence each; empty means healthy."""

Handler = Callable[[web.Request], Awaitable[web.Response]]

FRESH_SECONDS: Final = 1.0
"""How long what was rendered for one is given to others."""
_SHUTDOWN_SECONDS = 1.0
_log = structlog.get_logger(__name__)


class ServerError(Exception):
    """A port cannot be listened on; the message states which, why and what to do."""


def health(checks: Mapping[str, Check]) -> Handler:
    """Return a handler that answers 200 `ok`, or 503 with what is wrong; `?verbose` lists every check.

    Args:
        checks: By name; called on each request. For liveness none of them may depend on the API server: else all replicas restart in
            an outage, and lose the warm stores that the recovery needs.
    """

    async def answer(request: web.Request) -> web.Response:
        results = {name: list(check()) for name, check in checks.items()}
        is_well = not any(results.values())
        if is_well and "verbose" not in request.query:
            return web.Response(text="ok")
        lines = [f"[-] {name}: {'; '.join(problems)}" if problems else f"[+] {name} ok" for name, problems in results.items()]
        lines.append(f"{request.path} {'passed' if is_well else 'failed'}")
        return web.Response(text="\n".join(lines) + "\n", status=200 if is_well else 503)

    return answer


def scrape(metrics: Metrics) -> Handler:
    """Return a handler that renders `metrics` for Prometheus, compressed when it asks for that.

    Rendering takes 0.2 s for 10,000 jobs. So all who ask within a second get the same text: a crowd of them would block the event loop.
    """
    rendered: dict[tuple[str, bool], tuple[float, bytes]] = {}

    async def answer(request: web.Request) -> web.Response:
        encode, content_type = metrics.encoder(request.headers.get("Accept", ""))
        is_compressed = "gzip" in request.headers.get("Accept-Encoding", "")
        now = asyncio.get_running_loop().time()
        until, body = rendered.get((content_type, is_compressed), (0.0, b""))
        if now >= until:
            body = gzip.compress(encode(), compresslevel=6) if is_compressed else encode()
            rendered[content_type, is_compressed] = asyncio.get_running_loop().time() + FRESH_SECONDS, body
        encoding = {"Content-Encoding": "gzip"} if is_compressed else {}
        return web.Response(body=body, headers={"Content-Type": content_type} | encoding)

    return answer


class Server:
    """Serves some GET routes on one port."""

    def __init__(self, host: str, port: int, routes: Mapping[str, Handler], tls: ssl.SSLContext | None = None) -> None:
        """Prepare to serve.

        Args:
            host: Address; "" is every one, IPv4 and IPv6.
            port: 0 is a free one.
            routes: Path to handler.
            tls: With the certificate for HTTPS; None is plain HTTP.
        """
        self._host = host
        self._port = port
        self._routes = routes
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None
        self._accepting: asyncio.Task[NoReturn] | None = None

    async def run(self) -> None:
        """Listen and answer until cancelled.

        Raises:
            ServerError: The port is taken, or we may not listen on it.
        """
        await self.listen()
        try:
            if self._accepting:
                await self._accepting
        finally:
            await self.close()

    async def listen(self) -> int:
        """Begin to answer requests and return the port.

        Raises:
            ServerError: The port is taken, or we may not listen on it.
        """
        listening = self._listening_socket()
        port: int = listening.getsockname()[1]
        app = web.Application()
        app.add_routes([web.get(path, handler) for path, handler in self._routes.items()])
        app.on_response_prepare.append(close_after_answer)
        self._runner = web.AppRunner(app, shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        self._listener = Listener(cast("web.Server", self._runner.server), listening, self._tls)
        self._accepting = asyncio.create_task(self._listener.accept(), name=f"port {port}")
        self._accepting.add_done_callback(lambda _: listening.close())
        _log.info("listening", port=port, paths=sorted(self._routes), scheme="https" if self._tls else "http")
        return port

    async def close(self) -> None:
        """Stop answering; once is enough, twice does no harm."""
        if self._accepting:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        runner, self._runner = self._runner, None
        if runner:
            await runner.cleanup()
        if self._listener:
            await self._listener.close()

    def _listening_socket(self) -> socket.socket:
        is_dual = not self._host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if is_dual or ":" in self._host else socket.AF_INET
        try:
            listening = socket.create_server((self._host, self._port), family=family, dualstack_ipv6=is_dual)
        except OSError as error:
            paths = ", ".join(sorted(self._routes))
            why = "another process listens there" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
            raise ServerError(f"cannot serve {paths} on port {self._port}: {why}; choose another port by its flag") from error
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
        return listening
