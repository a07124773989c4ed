"""Credentials of a kubeconfig's exec plug-in: run in a thread, and kept until they expire.

Source: client.authentication.k8s.io/v1, ExecCredential.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from mpiop.clock import parse_time
from mpiop.kube.client_config import ExecPlugin
from mpiop.kube.tls import ClientCertificate
from mpiop.kube.tokens import Credential

EARLY = timedelta(seconds=10)
"""A credential is renewed this much before it expires, so that it is still good when it arrives."""


class ExecCredential:
    """Gives the plug-in's credential; many requests at once run it once."""

    def __init__(self, plugin: ExecPlugin, wall_clock: Callable[[], datetime]) -> None:
        """Run nothing yet.

        Args:
            plugin: What to run.
            wall_clock: The time that `expirationTimestamp` is compared with, aware.
        """
        self._plugin = plugin
        self._wall_clock = wall_clock
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: datetime | None = None

    async def current(self) -> Credential:
        """Return the credential, from the plug-in when there is none or it expires.

        Raises:
            ConfigError: The plug-in failed: we never go on without credentials.
        """
        async with self._lock:
            if self._credential is None or (self._expires is not None and self._wall_clock() >= self._expires - EARLY):
                return await self._run()
            return self._credential

    async def refresh(self, failed: Credential) -> bool:
        """Run the plug-in again, unless somebody did since `failed` was given out."""
        async with self._lock:
            if self._credential == failed:
                await self._run()
        return True

    async def _run(self) -> Credential:
        status = await asyncio.to_thread(self._plugin)
        token, certificate = str(status.get("token") or "").strip(), status.get("clientCertificateData")
        pair = ClientCertificate(str(certificate), str(status.get("clientKeyData"))) if certificate else None
        credential = Credential(token, pair)
        expiry = status.get("expirationTimestamp")
        self._expires = parse_time(str(expiry)) if expiry else None
        self._credential = credential
        return credential
