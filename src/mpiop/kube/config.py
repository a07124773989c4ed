"""Where the API server is and how to prove who we are: from the Pod that we run in, or from a kubeconfig."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mpiop.kube.client_config import ClientConfig, checked_url
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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
