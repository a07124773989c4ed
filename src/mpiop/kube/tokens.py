"""Sources of bearer tokens: none, a constant, or a file that the kubelet rotates."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import ClientCertificate

_log = logging.getLogger(__name__)  # the tools for users share this, and structlog would print into their output

REREAD_SECONDS = 60.0
"""client-go's period too; the kubelet renews a token when a fifth of its life is left."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Authenticates the operator; the token is not in `repr`, and so not in logs and tracebacks.

    Raises:
        ConfigError: The file contains more than a token, which would end up as a header of its own.
    """

    token: str = ""
    certificate: ClientCertificate | None = None

    def __post_init__(self) -> None:
        """Check the token."""
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ConfigError("the bearer token contains invalid characters: spaces, line ends or characters beyond ASCII")

    def __repr__(self) -> str:
        """Render without the secrets."""
        return f"Credential(token={'yes' if self.token else 'no'}, certificate={'yes' if self.certificate else 'no'})"


class CredentialSource(Protocol):
    """Provides the credential of each request."""

    def current(self) -> Credential:
        """Return the credential to use now.

        Raises:
            ConfigError: There is none to be had; the request must not go out without one.
        """
        ...

    def refresh(self, failed: Credential) -> bool:
        """Look for a newer one after the server answered `failed` with 401; return whether another attempt makes sense."""
        ...


class FixedCredential:
    """A credential that never changes: a token in the kubeconfig, or none with a client certificate."""

    def __init__(self, credential: Credential = Credential()) -> None:
        """Always return `credential`."""
        self._credential = credential

    def current(self) -> Credential:
        """Return the credential."""
        return self._credential

    def refresh(self, failed: Credential) -> bool:
        """Return False: there is no newer one."""
        del failed
        return False


class TokenFile:
    """A token in a file, re-read at most every `REREAD_SECONDS` and at once after a 401.

    An unreadable or empty file keeps the token before: the kubelet swaps a link, other tools write in place.
    """

    def __init__(self, path: Path, now: Callable[[], float], fallback: str = "") -> None:
        """Read the token for the first time.

        Args:
            path: The file.
            now: Monotonic clock, in seconds.
            fallback: Token to use until the file can be read; "" for none.

        Raises:
            ConfigError: The file is missing or empty, and there is no other token.
        """
        self._path = path
        self._now = now
        self._read_at = now()
        try:
            self._credential = Credential(_read_token(path))
        except (OSError, ValueError, ConfigError) as error:
            if not fallback:
                raise ConfigError(f"the token file {path} cannot be used: {error}; write a valid token there") from error
            self._credential = Credential(fallback)

    def current(self) -> Credential:
        """Return the token, and read it again if that is due."""
        if self._now() - self._read_at >= REREAD_SECONDS:
            self._reread()
        return self._credential

    def refresh(self, failed: Credential) -> bool:
        """Read the file now, unless somebody did since `failed` was given out."""
        if self._credential == failed:
            self._reread()
        return True

    def _reread(self) -> None:
        self._read_at = self._now()
        try:
            self._credential = Credential(_read_token(self._path))
        except (OSError, ValueError, ConfigError) as error:
            _log.warning("token file unusable; the token before stays in use: %s: %s", self._path, error)


def _read_token(path: Path) -> str:
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ValueError("it is empty")
    return token
