"""What a client must know of an API server: its address, the certificates, and one credential."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

ExecPlugin = Callable[[], Mapping[str, Any]]
"""Obtains a credential and returns it as the `status` of an ExecCredential, with a token or a client certificate.

It blocks, and raises `ConfigError` when there is no credential."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How to reach an API server; of token_file and exec_plugin at most one is set.

    Attributes:
        server: URL, perhaps with a path, without a slash at its end.
        tls: Certificates.
        namespace: The namespace that the configuration names: our own in a Pod, else the context's; "" when none.
        token: Bearer token that does not change; with `token_file`, it is used until that file can be read.
        token_file: File with a bearer token that is rotated.
        exec_plugin: Obtains credentials that expire: runs a credential plug-in, or refreshes an OIDC token.
        headers: Sent with each request, for impersonation and basic authentication; a name may occur several times.
        proxy_url: HTTP proxy; only a kubeconfig can name one.
        origin: Where all this comes from, for messages: the kubeconfig and its context, cluster and user; "" for a URL alone.
    """

    server: str
    tls: TLSConfig = field(default_factory=TLSConfig)
    namespace: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    exec_plugin: ExecPlugin | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy_url: str = field(default="", repr=False)
    origin: str = ""


def without_password(url: str) -> str:
    """Return `url`, which need not be a valid one, for a message: all before an `@` may be a user name and a password."""
    scheme, separator, _ = url.partition("://")
    before, _, host = url.rpartition("@")
    return f"{scheme}{separator}***@{host}" if separator and before else f"***@{host}" if before else url


def checked_url(url: str, what: str) -> str:
    """Return `url` if one can connect to its host and send its path unchanged.

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
        raise ConfigError(f"{what} {without_password(url)!r} is not a valid URL; it should look like https://host:6443")
    return url


def checked_server(server: str) -> str:
    """Return the URL of an API server without a slash at its end; `host:port` is plain HTTP, as for client-go.

    Raises:
        ConfigError: It is not one that can be connected to.
    """
    url = server if "://" in server else f"http://{server}"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"the API server's address {without_password(server)!r} is neither http:// nor https://")
    url = checked_url(url.rstrip("/"), "the API server's address")
    if {"@", "?", "#"} & set(url):
        raise ConfigError("the API server's address has an @, ? or #; a user and a password are named under users")
    return url
