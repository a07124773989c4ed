"""Credentials under asyncio. A module of its own, because `kubectl mpi` needs credentials, and the import of asyncio makes it slower."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from mpiop.clock import Clock
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.credentials import Authenticator
from mpiop.kube.tokens import Credential

_Answer = TypeVar("_Answer")


class AsyncAuthenticator:
    """An `Authenticator` for an event loop, shared by all transports to one API server: what blocks runs in a thread, one at a time."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        """Read certificates and token (see `Authenticator`)."""
        self._authenticator = Authenticator(config, clock)
        self._blocks = config.exec_plugin is not None
        self._lock = asyncio.Lock()
        self.context = self._authenticator.context
        self.is_current = self._authenticator.is_current

    async def current(self) -> Credential:
        """Return the credential for a request that begins now (see `Authenticator.current`)."""
        return await self._call(self._authenticator.current)

    async def refresh(self, failed: Credential) -> bool:
        """Look for a newer credential (see `Authenticator.refresh`)."""
        return await self._call(lambda: self._authenticator.refresh(failed))

    async def _call(self, function: Callable[[], _Answer]) -> _Answer:
        if not self._blocks:
            return function()
        async with self._lock:
            return await asyncio.to_thread(function)
