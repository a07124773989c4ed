"""Kubeconfig files, with the rules of kubectl 1.36 (client-go's clientcmd): what it does, or one sentence why not.

Where something is missing or fails, the `kubernetes` package continues with fewer credentials, or as another user; so it is not used
here (docs/adr/0025-kubeconfig.md).
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from mpiop.kube.client_config import ClientConfig, ExecPlugin, checked_server, checked_url, without_password
from mpiop.kube.errors import ConfigError, NoContextError
from mpiop.kube.exec_plugin import Plugin
from mpiop.kube.kubeconfig_files import KubeconfigFile, read_kubeconfigs
from mpiop.kube.oidc import oidc_credential
from mpiop.kube.tls import TLSConfig

_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_CLUSTER_EXTENSION = "client.authentication.k8s.io/exec"
_HEADER_CHARACTERS = "!#$&'*+-.^_`|~"


def load_kubeconfig(paths: Sequence[Path], *, context: str = "", server: str = "") -> ClientConfig:
    """Return the contents of a context of `paths`; of several files, the first that names a thing wins, and missing ones do not count.

    Args:
        paths: The files.
        context: Name of the context; "" is the current one.
        server: URL that replaces the cluster's; "" keeps it.

    Raises:
        NoContextError: There is no file, or no context to use.
        ConfigError: A file cannot be read, an entry is missing, or it asks for something that is not supported; in one sentence that
            names file, context, cluster and user.
    """
    files = read_kubeconfigs(paths)
    if not files:
        raise NoContextError(
            f"{', '.join(map(str, paths))}: no such kubeconfig, or an empty one; name one with --kubeconfig or $KUBECONFIG"
        )
    contexts, clusters, users = (_rows(files, kind) for kind in ("context", "cluster", "user"))
    origin = f"kubeconfig {', '.join(str(file.path) for file in files)}"
    current = (_top(file).text("current-context") for file in files)
    if not (name := context or next(filter(None, current), "")):
        raise NoContextError(f"{origin} has no current-context; choose one with `kubectl config use-context NAME`")
    origin += f", context {name!r}"
    try:
        chosen = _entry(contexts, "context", name)
        cluster = _entry(clusters, "cluster", chosen.text("cluster"))
        is_anonymous = not chosen.text("user") and "" not in users
        user = _Entry("user", {}, Path()) if is_anonymous else _entry(users, "user", chosen.text("user"))
        origin += f" (cluster {chosen.text('cluster')!r}, user {chosen.text('user')!r})"
        config = _config(cluster, user, server, partial(_oidc, paths, chosen.text("user")))
        return replace(config, namespace=chosen.text("namespace"), origin=origin)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Entry:
    """A context, cluster or user: its fields by their types, which client-go checks too; what is empty is not there."""

    kind: str
    fields: dict[str, Any]
    file: Path

    def text(self, field: str) -> str:
        return self._typed(field, str, "a text: put it in quotes") or ""

    def flag(self, field: str) -> bool:
        return self._typed(field, bool, "true or false, without quotes") or False

    def texts(self, field: str) -> Sequence[str]:
        found: list[Any] = self._typed(field, list, "a list of texts") or []
        if not all(isinstance(value, str) for value in found):
            raise self._wrong(field, "a list of texts: put them in quotes")
        return found

    def part(self, field: str, *, name: str = "") -> "_Entry | None":
        """Return a mapping below, called `name` in messages; None where it is absent."""
        found: dict[str, Any] | None = self._typed(field, dict, "a mapping")
        return None if found is None else _Entry(name or f"{self.kind}'s {field}", found, self.file)

    def parts(self, field: str) -> "list[_Entry]":
        found: list[Any] = self._typed(field, list, "a list") or []
        if not all(isinstance(value, dict | None) for value in found):
            raise self._wrong(field, "a list of mappings")
        return [_Entry(f"{self.kind}'s {field}", value or {}, self.file) for value in found]

    def path(self, field: str) -> str:
        """Return a path, absolute: it begins at the folder of the file that names it."""
        return str(self.file.parent / self.text(field)) if self.text(field) else ""

    def pem(self, field: str) -> str:
        try:
            return base64.b64decode("".join(self.text(field).split()), validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{field} of the {self.kind} is not base64 of a text: {error}") from error

    def file_or_data(self, field: str) -> tuple[str, str]:
        path, pem = self.path(field), self.pem(f"{field}-data")
        if path and pem:
            raise ConfigError(f"the {self.kind} has both {field} and {field}-data; remove one")
        return path, pem

    def _typed(self, field: str, kind: type, what: str) -> Any:
        value = self.fields.get(field)
        if value is not None and not isinstance(value, kind):
            raise self._wrong(field, what)
        return value

    def _wrong(self, field: str, what: str) -> ConfigError:
        return ConfigError(f"{field if field.isprintable() else repr(field)} of the {self.kind} must be {what}")


def _top(file: KubeconfigFile) -> _Entry:
    return _Entry(f"kubeconfig {file.path}", file.content, file.path)


def _rows(files: Sequence[KubeconfigFile], kind: str) -> dict[str, _Entry]:
    """Return the entries of the lists of `kind`s by name, which may be "" as for client-go; the first file wins.

    Raises:
        ConfigError: A file has two of one name, or something that is not an entry; client-go refuses both too.
    """
    found: dict[str, _Entry] = {}
    for file in files:
        own: dict[str, _Entry] = {}
        for row in _top(file).parts(f"{kind}s"):
            name = row.text("name")
            if name in own:
                raise ConfigError(f"{kind}s of the kubeconfig {file.path} has two entries with the name {name!r}; remove one")
            own[name] = row.part(kind, name=kind) or _Entry(kind, {}, file.path)
        found = own | found
    return found


def _entry(rows: Mapping[str, _Entry], kind: str, name: str) -> _Entry:
    if name not in rows:
        raise ConfigError(f"there is no {kind} {name!r}; the {kind}s are: {', '.join(map(repr, rows)) or 'none'}")
    return rows[name]


def _config(cluster: _Entry, user: _Entry, server: str, oidc: ExecPlugin) -> ClientConfig:
    if not (server or cluster.text("server")):
        raise ConfigError("the cluster has no server")
    url = checked_server(server or cluster.text("server"))
    token, proxy = user.text("token").strip(), cluster.text("proxy-url")
    if user.text("token") and not token:
        raise ConfigError("the user's token has only white space")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"proxy-url {without_password(proxy)!r} is not supported; use an http:// or https:// proxy")
    config = ClientConfig(
        url,
        tls=_tls(cluster, user, is_moved=bool(server)),
        token=token,
        token_file=user.path("tokenFile"),
        headers=(*_basic(user), *_impersonation(user)),
        proxy_url=checked_url(proxy, "proxy-url") if proxy else "",
    )
    plugin = _plugin(user, cluster, config)
    if url.startswith("http://"):  # kubectl sends no credential over a connection that anybody can read
        return ClientConfig(url, headers=_impersonation(user), proxy_url=config.proxy_url)
    has_basic, has_token = bool(_basic(user)), bool(config.token or config.token_file)
    if has_basic and has_token:
        raise ConfigError("the user has both a token and a username; remove one")
    if has_basic or has_token:  # kubectl runs no plug-in if it has them, and no exec plug-in if it has a client certificate
        return config
    if user.part("auth-provider") is not None:
        return replace(config, exec_plugin=_checked_provider(user, plugin, oidc))
    return config if config.tls.has_certificate else replace(config, exec_plugin=plugin)


def _tls(cluster: _Entry, user: _Entry, *, is_moved: bool) -> TLSConfig:
    ca_file, ca_data = cluster.file_or_data("certificate-authority")
    certificate_file, certificate_data = user.file_or_data("client-certificate")
    key_file, key_data = user.file_or_data("client-key")
    if cluster.flag("insecure-skip-tls-verify") and (ca_file or ca_data):
        raise ConfigError("the cluster has both insecure-skip-tls-verify and a certificate-authority; remove one")
    if bool(certificate_file or certificate_data) != bool(key_file or key_data):
        raise ConfigError("the user has only one of client-certificate and client-key")
    return TLSConfig(
        ca_file=ca_file,
        ca_data=ca_data,
        certificate_file=certificate_file,
        certificate_data=certificate_data,
        key_file=key_file,
        key_data=key_data,
        server_name="" if is_moved else cluster.text("tls-server-name"),
        is_insecure=cluster.flag("insecure-skip-tls-verify"),
    )


def _basic(user: _Entry) -> tuple[tuple[str, str], ...]:
    """Return the header of basic authentication: API servers know it no more, a proxy before one may."""
    if not user.text("username"):
        if user.text("password"):
            raise ConfigError("the user has a password without a username")
        return ()
    pair = f"{user.text('username')}:{user.text('password')}"
    return (("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),)


def _impersonation(user: _Entry) -> tuple[tuple[str, str], ...]:
    part = user.part("as-user-extra")
    extra = _Entry("user's as-user-extra", {str(key): value for key, value in part.fields.items()} if part else {}, user.file)
    headers = [("Impersonate-User", user.text("as")), ("Impersonate-Uid", user.text("as-uid"))]
    headers += [("Impersonate-Group", group) for group in user.texts("as-groups")]
    headers += [(f"Impersonate-Extra-{quote(key, safe=_HEADER_CHARACTERS)}", value) for key in extra.fields for value in extra.texts(key)]
    given = tuple((name, value) for name, value in headers if value)
    if given and not user.text("as"):
        raise ConfigError("the user asks for as-uid, as-groups or as-user-extra without as; name the user to impersonate")
    if not all(value.isprintable() for _, value in given):
        raise ConfigError("the user's as, as-uid, as-groups or as-user-extra has line ends or control characters")
    return given


def _plugin(user: _Entry, cluster: _Entry, config: ClientConfig) -> Plugin | None:
    if (settings := user.part("exec")) is None:
        return None
    command, version, mode = (settings.text(field) for field in ("command", "apiVersion", "interactiveMode"))
    if not command:
        raise ConfigError("the user's exec has no command")
    if version not in _API_VERSIONS:
        raise ConfigError(f"the user's exec has the apiVersion {version!r}; it must be {' or '.join(_API_VERSIONS)}")
    if not mode and version == _API_VERSIONS[1]:
        mode = "IfAvailable"
    if mode not in {"Never", "IfAvailable", "Always"}:
        raise ConfigError(f"the user's exec has the interactiveMode {mode!r}; it must be Never, IfAvailable or Always")
    return Plugin(
        command=settings.path("command") if "/" in command else command,
        arguments=settings.texts("args"),
        environment={row.text("name"): row.text("value") for row in settings.parts("env")},
        api_version=version,
        interactive_mode=mode,
        install_hint=settings.text("installHint"),
        cluster=_cluster_info(cluster, config) if settings.flag("provideClusterInfo") else {},
    )


def _cluster_info(cluster: _Entry, config: ClientConfig) -> Mapping[str, Any]:
    """Return the `spec.cluster` of an ExecCredential."""
    authority = config.tls.authority().encode()
    extensions = {row.text("name"): row.fields.get("extension") for row in cluster.parts("extensions")}
    info = {
        "server": config.server,
        "tls-server-name": config.tls.server_name,
        "insecure-skip-tls-verify": config.tls.is_insecure,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": config.proxy_url,
        "config": extensions.get(_CLUSTER_EXTENSION),
    }
    return {field: value for field, value in info.items() if value}


def _checked_provider(user: _Entry, plugin: Plugin | None, oidc: ExecPlugin) -> ExecPlugin:
    name = cast("_Entry", user.part("auth-provider")).text("name")
    if plugin is not None:
        raise ConfigError("the user has both exec and auth-provider; remove one")
    if name != "oidc":
        raise ConfigError(f"the user's auth-provider {name!r} is not supported, nor by kubectl since 1.26; use its exec plug-in")
    return oidc


def _oidc(paths: Sequence[Path], name: str) -> Mapping[str, Any]:
    """Return the token of a user's OIDC provider; the files are read again, because kubectl may have refreshed it meanwhile."""
    files = read_kubeconfigs(paths)
    user = _entry(_rows(files, "user"), "user", name)
    provider = (user.part("auth-provider") or user).part("config")
    if provider is None:
        raise ConfigError("the user's auth-provider has no config")
    authority = "idp-certificate-authority"
    tls = TLSConfig(ca_file=provider.path(authority), ca_data=provider.pem(f"{authority}-data"))
    return oidc_credential(provider.fields, tls, next(file for file in files if file.path == user.file).save)
