"""Token, client certificate and TLS context of each request, as one question."""

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mpiop.clock import Clock
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import ConfigError
from mpiop.kube.exec_credential import ExecCredential
from mpiop.kube.tls import TLSContexts
from mpiop.kube.tokens import Credential, CredentialSource, FixedCredential, TokenFile


class Authenticator:
    """Provides the credential and the TLS context of each request; every error names the kubeconfig, context and user."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        """Read certificates and token.

        Raises:
            ConfigError: One of them cannot be used.
        """
        self._origin = config.origin
        with self._named():
            self._source = credential_source(config, clock)
            self._contexts = TLSContexts(config.tls, clock.monotonic) if config.server.startswith("https://") else None

    def current(self) -> Credential:
        """Return the credential for a request that begins now; this blocks while a plug-in runs.

        Raises:
            ConfigError: There is none to be had.
        """
        with self._named():
            return self._source.current()

    def refresh(self, failed: Credential) -> bool:
        """Look for a newer credential after `failed` met a 401; return whether another attempt makes sense. This may block too.

        Raises:
            ConfigError: There is none to be had.
        """
        with self._named():
            return self._source.refresh(failed)

    def context(self, credential: Credential) -> ssl.SSLContext | None:
        """Return the TLS context for `credential`; None without TLS.

        Raises:
            ConfigError: Its client certificate cannot be used.
        """
        with self._named():
            return self._contexts.current(credential.certificate) if self._contexts else None

    def is_current(self, context: ssl.SSLContext | None) -> bool:
        """Return whether a connection of `context` is as good as a new one."""
        return self._contexts is None or self._contexts.is_current(context)

    @contextmanager
    def _named(self) -> Generator[None]:
        try:
            yield
        except ConfigError as error:
            if not self._origin:
                raise
            raise ConfigError(f"{self._origin}: {error}") from error


def credential_source(config: ClientConfig, clock: Clock) -> CredentialSource:
    """Return the source of the credential that `config` names.

    Raises:
        ConfigError: Its token file cannot be used.
    """
    if config.exec_plugin is not None:
        return ExecCredential(config.exec_plugin, clock.now)
    if config.token_file:
        return TokenFile(Path(config.token_file), clock.monotonic, config.token)
    return FixedCredential(Credential(config.token))
