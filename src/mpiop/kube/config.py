"""Where the API server is and how to prove who we are: from a kubeconfig, or from the Pod that we run in.

The operator and the tools for users differ only in where they search.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mpiop.kube.client_config import ClientConfig, checked_server
from mpiop.kube.errors import ConfigError, NoContextError
from mpiop.kube.tls import TLSConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_config(
    master: str = "",
    kubeconfig: str = "",
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Find the operator's configuration: the flag, then $KUBECONFIG, then the Pod that we run in.

    Args:
        master: URL of the API server; "" means the one of the configuration, anything else wins over it.
        kubeconfig: Path of a kubeconfig; "" looks further.
        environment: Environment variables.
        service_account: Directory with `token`, `ca.crt` and `namespace` in a Pod.

    Raises:
        ConfigError: Nothing was found, or what was found cannot be used.
    """
    paths = [Path(kubeconfig)] if kubeconfig else _listed(environment)
    return _kubeconfig(paths, server=master) if paths else _in_cluster(environment, service_account, master)


def find_config(
    kubeconfig: str = "",
    context: str = "",
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Find a user's configuration as kubectl does: the option, then $KUBECONFIG or ~/.kube/config, then the Pod that we run in.

    Args:
        kubeconfig: Path of a kubeconfig; "" looks further.
        context: Of the kubeconfig; "" is the current one.
        environment: Environment variables.
        service_account: As for `load_config`.

    Raises:
        ConfigError: Nothing was found, or what was found cannot be used.
    """
    paths = [Path(kubeconfig)] if kubeconfig else _listed(environment) or [Path(environment.get("HOME", "/"), ".kube", "config")]
    is_pod = bool(environment.get("KUBERNETES_SERVICE_HOST")) and (service_account / "token").exists()
    try:
        config = _kubeconfig(paths, context=context)
    except NoContextError:
        # kubectl 1.36 continues with http://localhost:8080 outside a Pod, and uses a Pod's account even if --kubeconfig names a file.
        if kubeconfig or context or not is_pod:
            raise
        config = _in_cluster(environment, service_account, "")
    if is_pod and not config.namespace:  # kubectl's choice too, also for the context of another cluster
        return replace(config, namespace=_namespace(service_account / "namespace"))
    return config


def _listed(environment: Mapping[str, str]) -> list[Path]:
    return [Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]


def _kubeconfig(paths: list[Path], *, context: str = "", server: str = "") -> ClientConfig:
    # Only those who use a kubeconfig pay for importing PyYAML.
    from mpiop.kube.kubeconfig import load_kubeconfig  # noqa: PLC0415

    return load_kubeconfig(paths, context=context, server=checked_server(server) if server else "")


def _in_cluster(environment: Mapping[str, str], service_account: Path, master: str) -> ClientConfig:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    token, ca = service_account / "token", service_account / "ca.crt"
    if not token.exists():
        if master:
            return ClientConfig(checked_server(master))
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
        server=checked_server(master or f"https://{address}:{port}"),
        tls=TLSConfig(ca_file=str(ca)) if ca.exists() else TLSConfig(),
        namespace=environment.get("POD_NAMESPACE") or _namespace(service_account / "namespace"),
        token_file=str(token),
        origin="service account of this Pod",
    )


def _namespace(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
