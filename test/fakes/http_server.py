"""A small HTTP/1.1 server on loopback that a test scripts byte by byte: what a proxy or a dying API server may answer."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from fakes.certificates import Pair
from faults.wire import as_chunk, close, read_message
from mpiop.kube.tls import ClientCertificate, load_certificate
from mpiop.server import Server


@dataclass(slots=True)
class Exchange:
    """One request as it came, and the means to answer it; `connection` numbers the connections from 1."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    connection: int
    writer: asyncio.StreamWriter
    client_certificate: Mapping[str, Any] = field(default_factory=dict)

    async def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        """Send a whole answer; anything but bytes goes as JSON. Header names have `_` for `-`."""
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        fields = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
        await self.send(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + content)

    async def refuse(self, status: int, reason: str = "", message: str = "", **headers: str) -> None:
        """Send a `metav1.Status`."""
        body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}
        await self.answer(body, status, **headers)

    async def begin_stream(self) -> None:
        """Send the head of a chunked answer."""
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, content: bytes) -> None:
        """Send a chunk of the stream; an empty one ends it."""
        await self.send(as_chunk(content))

    async def event(self, kind: str, name: str, **metadata: str) -> None:
        """Send a watch event of an object as a chunk of its own."""
        await self.chunk(msgspec.json.encode({"type": kind, "object": {"metadata": {"name": name, **metadata}}}) + b"\n")

    async def send(self, content: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(content)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    def close(self) -> None:
        """End the connection in order (FIN)."""
        close(self.writer, reset=False)

    def reset(self) -> None:
        """Break the connection (RST)."""
        close(self.writer, reset=True)


Handler = Callable[[Exchange], Awaitable[None]]


class HttpServer:
    """The server; `handler` may be changed at any time.

    Attributes:
        exchanges: Every request, in order.
        url: Where it listens.
        open_connections: Connections that are not closed.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.exchanges: list[Exchange] = []
        self.url = ""
        self.connections = 0
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def open_connections(self) -> int:
        return len(self.tasks)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while (exchange := await self._read(reader, writer, number)) is not None:
                self.exchanges.append(exchange)
                await self.handler(exchange)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass  # the client went, or the test is over
        finally:
            self.tasks.discard(task)
            writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Exchange | None:
        if writer.is_closing():
            return None
        message = await read_message(reader)
        method, target, _ = message.first_line.split(" ")
        headers = {name: value.encode("latin-1").decode() for name, value in message.fields.items()}
        url, content = urlsplit(target), message.body
        certificate = writer.get_extra_info("peercert") or {}
        is_form = headers.get("content-type") == "application/x-www-form-urlencoded"
        body = (content.decode() if is_form else msgspec.json.decode(content)) if content else None
        return Exchange(method, url.path, dict(parse_qsl(url.query)), headers, body, number, writer, certificate)


@contextlib.asynccontextmanager
async def http_server(
    handler: Handler, pair: Pair | None = None, client_authority: str = "", *, address: str = "127.0.0.1"
) -> AsyncIterator[HttpServer]:
    """Serve on a free port of loopback: with TLS when given a certificate, asking for the client's when given an authority."""
    context = None if pair is None else server_context(pair, client_authority)
    server = HttpServer(handler)
    listener = await asyncio.start_server(server.serve, address, 0, ssl=context)
    host, port = listener.sockets[0].getsockname()[:2]
    server.url = f"{'http' if context is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}"
    try:
        yield server
    finally:
        listener.close()
        for task in list(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        await listener.wait_closed()


def server_context(pair: Pair, client_authority: str = "") -> ssl.SSLContext:
    """Return a context with the certificate of `pair`; it may be given another later, by `load_pair`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, pair)
    if client_authority:
        context.load_verify_locations(cadata=client_authority)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    load_certificate(context, ClientCertificate(pair.certificate, pair.key), "the certificate of the test")


@contextlib.asynccontextmanager
async def listening(server: Server) -> AsyncIterator[int]:
    """Let a server of the operator serve; yield its port."""
    port = await server.listen()
    try:
        yield port
    finally:
        await server.close()


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
