"""Credentials that expire, from a kubeconfig's exec plug-in or OIDC provider: kept until then.

Source: client.authentication.k8s.io/v1, ExecCredential.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from mpiop.clock import parse_time
from mpiop.kube.client_config import ExecPlugin
from mpiop.kube.errors import ConfigError
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
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._expires: datetime | None = None

    def current(self) -> Credential:
        """Return the credential, from the plug-in when there is none or it expires; this blocks.

        Raises:
            ConfigError: The plug-in failed: we never continue without credentials.
        """
        with self._lock:
            if self._credential is None or (self._expires is not None and self._wall_clock() >= self._expires - EARLY):
                return self._run()
            return self._credential

    def refresh(self, failed: Credential) -> bool:
        """Run the plug-in again, unless somebody did since `failed` was given out; this blocks."""
        with self._lock:
            if self._credential == failed:
                self._run()
        return True

    def _run(self) -> Credential:
        status = self._plugin()
        token, certificate, expiry = (status.get(field) for field in ("token", "clientCertificateData", "expirationTimestamp"))
        pair = ClientCertificate(str(certificate), str(status.get("clientKeyData"))) if certificate else None
        credential = Credential(str(token or "").strip(), pair)
        try:
            expires = parse_time(str(expiry)).astimezone() if expiry else None
        except ValueError as error:
            raise ConfigError(f"the credential's expirationTimestamp {expiry!r} is not a time") from error
        self._credential, self._expires = credential, expires
        return credential
