"""Clients against a scripted server on loopback."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fakes.certificates import Authority
from fakes.http_server import Exchange, HttpServer, http_server
from mpiop.kube.client import Client
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.tls import TLSConfig
from mpiop.kube.transport import TransportOptions, connect


@dataclass
class Bench:
    """A scripted server over TLS and clients of it."""

    authority: Authority
    directory: Path
    stack: AsyncExitStack
    observed: list[tuple[str, str, int]] = field(default_factory=list)

    async def serve(self, handler: Callable[[Exchange], Awaitable[None]]) -> HttpServer:
        """Return a server with that script."""
        return await self.stack.enter_async_context(http_server(handler, self.authority.issue("server"), self.authority.certificate))

    async def connect(self, handler: Callable[[Exchange], Awaitable[None]], **options: Any) -> tuple[HttpServer, Client]:
        """Return a server with that script and a client of it."""
        server = await self.serve(handler)
        return server, await self.client(server, **options)

    async def client(self, server: HttpServer, *, clock: Any = None, config: dict[str, Any] | None = None, **options: Any) -> Client:
        """Return a client of `server`."""
        fields = {"tls": TLSConfig(ca_data=self.authority.certificate)} | (config or {})
        options = {"observer": self.observe} | options
        client = await connect(ClientConfig(server.url, **fields), TransportOptions(**options), clock)
        self.stack.push_async_callback(client.close)
        return client

    def observe(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Record what the observer receives."""
        assert seconds >= 0
        self.observed.append((verb, resource, code))


@pytest.fixture
async def bench(authority: Authority, tmp_path: Path) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(authority, tmp_path, stack)
