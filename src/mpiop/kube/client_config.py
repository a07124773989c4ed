"""What a client must know of an API server: its address, the certificates, and one credential."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

ExecPlugin = Callable[[], Mapping[str, Any]]
"""Runs a credential plug-in and returns the `status` of its ExecCredential, with a token or a client certificate.

It blocks, and raises `ConfigError` when there is no credential."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How to reach an API server; of token, token_file and exec_plugin at most one is set.

    Attributes:
        server: URL, perhaps with a path, without a slash at its end.
        tls: Certificates.
        namespace: The namespace that the configuration names: our own in a Pod, else the context's; "" when none.
        token: Bearer token that does not change.
        token_file: File with a bearer token that is rotated.
        exec_plugin: Runs a program that gives credentials.
        proxy_url: HTTP proxy; only a kubeconfig can name one, the environment's are never used.
    """

    server: str
    tls: TLSConfig = field(default_factory=TLSConfig)
    namespace: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    exec_plugin: ExecPlugin | None = None
    proxy_url: str = ""


def checked_url(url: str, what: str) -> str:
    """Return `url` if one can connect to its host and send its path as it stands.

    Raises:
        ConfigError: One cannot; the message begins with `what`.
    """
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        is_usable = bool(parts.hostname) and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError(f"{what} {url!r} is no URL; it should look like https://host:6443")
    return url
