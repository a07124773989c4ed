"""Kubeconfig files: which cluster, which user, and what we support of them.

What we cannot honour is refused: going on without it could mean acting as somebody else.
Source: client-go tools/clientcmd/api/v1.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from mpiop.kube.config import ClientConfig, checked_url
from mpiop.kube.errors import ConfigError
from mpiop.kube.exec_plugin import API_VERSIONS, ExecConfig
from mpiop.kube.tls import TLSConfig

UNSUPPORTED = ("as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username", "password")
"""Of a user: impersonation, plug-ins that client-go dropped too, and basic authentication, which the API server dropped."""

Entry = Mapping[str, Any]
NOBODY: tuple[Entry, Path] = ({}, Path())


def load_kubeconfig(paths: Sequence[Path]) -> ClientConfig:
    """Return what the current context of `paths` says; of several files, the first that names a thing wins.

    Raises:
        ConfigError: No file could be read, an entry is missing, or it asks for something that is not supported.
    """
    files = [(path, _read(path)) for path in paths if len(paths) == 1 or path.exists()]
    if not files:
        raise ConfigError(f"KUBECONFIG names no file that exists: {', '.join(map(str, paths))}")
    origin = ", ".join(str(path) for path, _ in files)
    name = next((str(content["current-context"]) for _, content in files if content.get("current-context")), "")
    if not name:
        raise ConfigError(f"{origin} has no current-context; set one with `kubectl config use-context`")
    context, _ = _entry(files, "context", name)
    cluster, cluster_directory = _entry(files, "cluster", str(context.get("cluster", "")))
    user, user_directory = _entry(files, "user", str(context["user"])) if context.get("user") else NOBODY
    if not cluster.get("server"):
        raise ConfigError(f"{origin}: cluster {context.get('cluster')!r} has no server")
    if unsupported := [field for field in UNSUPPORTED if user.get(field)]:
        raise ConfigError(
            f"{origin}: user {context.get('user')!r} asks for {', '.join(unsupported)}, which is not supported; "
            "use a token, a client certificate or an exec plug-in"
        )
    plugin = _exec(user["exec"], cluster, user_directory) if user.get("exec") else None
    token = str(user.get("token") or "").strip() if plugin is None else ""
    return ClientConfig(
        server=str(cluster["server"]),
        tls=_tls(cluster, user, cluster_directory, user_directory),
        namespace=str(context.get("namespace") or ""),
        token=token,
        token_file="" if plugin or token else _path(user, "tokenFile", user_directory),
        exec_plugin=plugin,
        proxy_url=_proxy(cluster, origin),
    )


def _read(path: Path) -> Entry:
    try:
        content: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe loaders both
    except OSError as error:
        raise ConfigError(f"the kubeconfig {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the kubeconfig {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"the kubeconfig {path} holds no mapping; is it empty?")
    return cast("Entry", content)


def _entry(files: Sequence[tuple[Path, Entry]], kind: str, name: str) -> tuple[Entry, Path]:
    """Return the entry `name` of the list of `kind`s, and the directory that its relative paths start from."""
    for path, content in files:
        for row in cast("Sequence[Entry]", content.get(f"{kind}s") or ()):
            if row.get("name") == name:
                return cast("Entry", row.get(kind) or {}), path.resolve().parent
    raise ConfigError(f"{', '.join(str(path) for path, _ in files)}: there is no {kind} named {name!r}")


def _path(entry: Entry, field: str, directory: Path) -> str:
    value = str(entry.get(field) or "")
    return str(directory / value) if value else ""


def _data(entry: Entry, field: str) -> str:
    try:
        return base64.b64decode(str(entry.get(field) or ""), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"the kubeconfig's {field} is not the base64 of a PEM file: {error}") from error


def _tls(cluster: Entry, user: Entry, cluster_directory: Path, user_directory: Path) -> TLSConfig:
    return TLSConfig(
        ca_file=_path(cluster, "certificate-authority", cluster_directory),
        ca_data=_data(cluster, "certificate-authority-data"),
        certificate_file=_path(user, "client-certificate", user_directory),
        certificate_data=_data(user, "client-certificate-data"),
        key_file=_path(user, "client-key", user_directory),
        key_data=_data(user, "client-key-data"),
        server_name=str(cluster.get("tls-server-name") or ""),
        is_insecure=bool(cluster.get("insecure-skip-tls-verify")),
    )


def _proxy(cluster: Entry, origin: str) -> str:
    proxy = str(cluster.get("proxy-url") or "")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"{origin}: proxy-url {proxy!r} is not supported; use an http:// or https:// proxy")
    return checked_url(proxy, f"{origin}: proxy-url") if proxy else ""


def _exec(plugin: Entry, cluster: Entry, directory: Path) -> ExecConfig:
    command = str(plugin.get("command") or "")
    version = str(plugin.get("apiVersion") or "")
    if not command:
        raise ConfigError("the kubeconfig's exec plug-in has no command")
    if version not in API_VERSIONS:
        raise ConfigError(f"credential plug-in {command}: apiVersion {version!r} is not supported; {' and '.join(API_VERSIONS)} are")
    if plugin.get("interactiveMode") == "Always":
        raise ConfigError(f"credential plug-in {command}: it wants to talk to a person (interactiveMode Always), and here is none")
    return ExecConfig(
        command=str(directory / command) if "/" in command else command,
        args=tuple(str(argument) for argument in plugin.get("args") or ()),
        env={str(row["name"]): str(row["value"]) for row in plugin.get("env") or ()},
        api_version=version,
        install_hint=str(plugin.get("installHint") or ""),
        cluster=_cluster_for_plugin(cluster) if plugin.get("provideClusterInfo") else None,
    )


def _cluster_for_plugin(cluster: Entry) -> Entry:
    fields = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    return {field: cluster[field] for field in fields if cluster.get(field)}
