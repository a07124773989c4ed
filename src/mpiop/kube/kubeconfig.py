"""Kubeconfig files, read by the `kubernetes` package; here is only what it would get wrong (docs/adr/0002-transport.md).

What cannot be honoured is refused: going on without it could mean acting as somebody else.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, exec_provider, kube_config

from mpiop.kube.client_config import ClientConfig, ExecPlugin, checked_url
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

# The two modules have no types.
_KubeConfigMerger: Any = kube_config.KubeConfigMerger
_KubeConfigLoader: Any = kube_config.KubeConfigLoader
_ConfigNode: Any = kube_config.ConfigNode
_ExecProvider: Any = exec_provider.ExecProvider

UNSUPPORTED = ("as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username", "password")
"""Of a user: what the package ignores (impersonation), what it does unsafely (auth-provider: OIDC without the provider's certificate)
and what the API server dropped (basic authentication)."""

PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
IN_MEMORY = "/dev/shm"  # noqa: S108 - the package writes keys to files that only we can read, here never on a disk
PLUGIN_SECONDS = 60

_FAILURES = (ConfigException, yaml.YAMLError, OSError, ValueError, LookupError, TypeError, AttributeError)
"""What the package raises for a file that is no kubeconfig; the last four are no part of its design."""


def load_kubeconfig(paths: Sequence[Path]) -> ClientConfig:
    """Return what the current context of `paths` says; of several files, the first that names a thing wins.

    Raises:
        ConfigError: No file could be read, an entry is missing, or it asks for something that is not supported.
    """
    files = [path.resolve() for path in paths if path.exists()]
    if not files:
        raise ConfigError(f"there is no kubeconfig: {', '.join(map(str, paths))} does not exist")
    origin = ", ".join(map(str, files))
    try:
        return _load(files, origin)
    except _FAILURES as error:
        raise ConfigError(" ".join(f"the kubeconfig {origin} cannot be used: {error}".split())) from error


def _load(files: Sequence[Path], origin: str) -> ClientConfig:
    merger = _KubeConfigMerger("")
    for file in files:
        merger.load_config(str(file))
    # The package takes the last current-context, client-go the first.
    name = next((content["current-context"] for content in merger.config_files.values() if content.get("current-context")), "")
    if not name:
        raise ConfigError(f"{origin} has no current-context; set one with `kubectl config use-context`")
    loader = _KubeConfigLoader(merger.config, active_context=name, config_base_path=None, temp_file_path=IN_MEMORY)
    context = loader.current_context["context"]
    cluster = _entry(merger, "cluster", context["cluster"])
    user = _entry(merger, "user", context["user"]) if context.get("user") else _ConfigNode("user", {})
    _check(cluster.value, user.value, f"{origin}: context {name!r}")
    plugin = _plugin(user, cluster) if "exec" in user else None
    token_file = "" if plugin or "token" in user else str(user.value.get("tokenFile", ""))
    for field in ("exec", "tokenFile", *(["token"] if plugin else [])):
        user.value.pop(field, None)  # so that the package does not run or read it: it would do so once, and log a failure
    settings = Configuration(proxy="", no_proxy="")  # else those of the environment
    loader.load_and_set(settings)
    return ClientConfig(
        server=settings.host,
        tls=TLSConfig(
            ca_file=settings.ssl_ca_cert or "",
            certificate_file=settings.cert_file or "",
            key_file=settings.key_file or "",
            server_name=settings.tls_server_name or "",
            is_insecure=not settings.verify_ssl,
        ),
        namespace=str(context.get("namespace") or ""),
        token=str(settings.api_key.get("BearerToken", "")).removeprefix("Bearer ").strip(),
        token_file=token_file,
        exec_plugin=plugin,
        proxy_url=settings.proxy or "",
    )


def _entry(merger: Any, kind: str, name: str) -> Any:
    """Return the node `name` of the list of `kind`s; the package would take a missing user, or an empty field, for none at all.

    Its paths are made absolute: the package lets those of a user start from the file of the cluster.
    """
    node = merger.config[f"{kind}s"].get_with_name(name)[kind]
    for field in [field for field, value in node.value.items() if value in ("", None)]:
        del node.value[field]
    for field in PATHS:
        if field in node:
            node.value[field] = str(Path(node.path).parent / node.value[field])
    return node


def _check(cluster: Mapping[str, Any], user: Mapping[str, Any], where: str) -> None:
    if "server" not in cluster:
        raise ConfigError(f"{where} names a cluster that has no server")
    if unsupported := [field for field in UNSUPPORTED if user.get(field)]:
        raise ConfigError(
            f"{where} names a user who asks for {', '.join(unsupported)}, which is not supported; "
            "use a token, a client certificate or an exec plug-in"
        )
    proxy = str(cluster.get("proxy-url", ""))
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: proxy-url {proxy!r} is not supported; use an http:// or https:// proxy")
    if proxy:
        checked_url(proxy, f"{where}: proxy-url")


def _plugin(user: Any, cluster: Any) -> ExecPlugin:
    """Return what runs the credential plug-in of `user`: the package's runner, with a time limit.

    The package's loader logs a plug-in that fails and goes on without a credential, its runner raises.
    """
    config = dict(user.value["exec"])
    command, hint = str(config.get("command") or ""), config.get("installHint") or ""
    if not command:
        raise ConfigError("the kubeconfig's exec plug-in has no command")
    if config.get("interactiveMode") == "Always":
        raise ConfigError(f"credential plug-in {command}: it wants to talk to a person (interactiveMode Always), and here is none")
    program = str(Path(user.path).parent / command) if "/" in command else command
    # coreutils: ends the plug-in with all that it started, and says so.
    limit = ["--verbose", "--kill-after=5", str(PLUGIN_SECONDS), program]
    config |= {"command": "timeout", "args": [*limit, *map(str, config.get("args") or ())]}
    provider = _ExecProvider(_ConfigNode("exec", config), None, cluster)

    def run() -> Mapping[str, Any]:
        try:
            status: Any = provider.run()
        except AttributeError as error:  # at a terminal, where the package looks for words that it did not catch
            raise ConfigError(f"credential plug-in {command}: it failed; what it said is above {hint}") from error
        except _FAILURES as error:
            raise ConfigError(" ".join(f"credential plug-in {command}: {error} {hint}".split())) from error
        return _checked_status(status, command)

    return run


def _checked_status(status: Any, command: str) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", status) if isinstance(status, dict) else {}
    if bool(fields.get("clientCertificateData")) != bool(fields.get("clientKeyData")):
        raise ConfigError(f"credential plug-in {command}: it gave only one of clientCertificateData and clientKeyData")
    if not str(fields.get("token") or "").strip() and not fields.get("clientCertificateData"):
        raise ConfigError(f"credential plug-in {command}: it gave neither a token nor a client certificate")
    return fields
