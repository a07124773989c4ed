"""Token, client certificate and TLS context of each request, as one question."""

import ssl
from pathlib import Path

from mpiop.clock import Clock
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.exec_credential import ExecCredential
from mpiop.kube.tls import TLSContexts
from mpiop.kube.tokens import Credential, CredentialSource, FixedCredential, TokenFile


class Authenticator:
    """Provides the credential and the TLS context of each request; shared by all transports to one API server."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        """Read certificates and token.

        Raises:
            ConfigError: One of them cannot be used.
        """
        self._source = credential_source(config, clock)
        self._contexts = TLSContexts(config.tls, clock.monotonic) if config.server.startswith("https://") else None

    async def current(self) -> Credential:
        """Return the credential for a request that begins now.

        Raises:
            ConfigError: There is none to be had.
        """
        return await self._source.current()

    async def refresh(self, failed: Credential) -> bool:
        """Look for a newer credential after `failed` met a 401; return whether another attempt makes sense."""
        return await self._source.refresh(failed)

    def context(self, credential: Credential) -> ssl.SSLContext | None:
        """Return the TLS context for `credential`; None without TLS.

        Raises:
            ConfigError: Its client certificate cannot be used.
        """
        return self._contexts.current(credential.certificate) if self._contexts else None

    def is_current(self, context: ssl.SSLContext | None) -> bool:
        """Return whether a connection of `context` is as good as a new one."""
        return self._contexts is None or self._contexts.is_current(context)


def credential_source(config: ClientConfig, clock: Clock) -> CredentialSource:
    """Return where the credentials of `config` come from.

    Raises:
        ConfigError: The token file cannot be used.
    """
    if config.exec_plugin is not None:
        return ExecCredential(config.exec_plugin, clock.now)
    if config.token_file:
        return TokenFile(Path(config.token_file), clock.monotonic)
    return FixedCredential(Credential(config.token))
