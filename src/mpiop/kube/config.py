"""Where the API server is and how to prove who we are: from the Pod that we run in, or from a kubeconfig."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

ExecPlugin = Callable[[], Mapping[str, Any]]
"""Runs a credential plug-in and returns the `status` of its ExecCredential, with a token or a client certificate.

It blocks, and raises `ConfigError` when there is no credential."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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


def load_config(
    master: str = "",
    kubeconfig: str = "",
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Find the configuration: the flag, then $KUBECONFIG, then the Pod that we run in.

    Args:
        master: URL of the API server; "" is what the configuration says, anything else wins over it.
        kubeconfig: Path of a kubeconfig; "" looks further.
        environment: Environment variables.
        service_account: Directory with `token`, `ca.crt` and `namespace` in a Pod.

    Raises:
        ConfigError: Nothing was found, or what was found cannot be used.
    """
    paths = [Path(kubeconfig)] if kubeconfig else [Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    if paths:
        # Only those who use a kubeconfig pay for importing the kubernetes package: 0.7 s and 20 MB.
        from mpiop.kube.kubeconfig import load_kubeconfig  # noqa: PLC0415

        config = load_kubeconfig(paths)
    else:
        config = _in_cluster(environment, service_account, master)
    return replace(config, server=_checked_server(master or config.server))


def _in_cluster(environment: Mapping[str, str], service_account: Path, master: str) -> ClientConfig:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    token, ca = service_account / "token", service_account / "ca.crt"
    if not token.exists():
        if master:
            return ClientConfig(master)
        if host:
            raise ConfigError(
                f"this is a Pod (KUBERNETES_SERVICE_HOST={host}), but it has no service account token at {token}; "
                "project one into the Pod, or pass --kubeConfig"
            )
    if not host and not master:
        raise ConfigError(
            "no API server is known: this is not a Pod (KUBERNETES_SERVICE_HOST is not set); "
            "pass --kubeConfig PATH or --master URL, or set KUBECONFIG"
        )
    address = f"[{host}]" if ":" in host else host
    return ClientConfig(
        server=f"https://{address}:{port}",
        tls=TLSConfig(ca_file=str(ca)) if ca.exists() else TLSConfig(),
        namespace=_namespace(service_account / "namespace"),
        token_file=str(token),
    )


def _namespace(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _checked_server(server: str) -> str:
    url = server if "://" in server else f"http://{server}"  # as client-go reads `--master host:port`
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"the API server's address {server!r} is neither http:// nor https://")
    return checked_url(url.rstrip("/"), "the API server's address")


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
