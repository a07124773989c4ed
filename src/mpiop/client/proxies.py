"""The proxy that the environment names for an API server, and the hosts that it excepts, as kubectl reads them."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

from mpiop.kube.errors import ConfigError

_PORTS: Final = {"http": 80, "https": 443}
_WITH_PORT: Final = re.compile(r"(\[.*\]|[^:]*):(\d+)")


def proxy_of_environment(server: str) -> str:
    """Return the proxy that $HTTPS_PROXY, $HTTP_PROXY, $ALL_PROXY and $NO_PROXY name for `server`; "" for none.

    Raises:
        ConfigError: It is not an HTTP proxy.
    """
    proxies, url = getproxies(), urlsplit(server)
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if not proxy or _is_excepted(url, proxies.get("no", "")):
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise ConfigError("the proxy that the environment names is not supported; use an http:// or https:// proxy")
    return proxy


def _is_excepted(url: SplitResult, no_proxy: str) -> bool:
    """Return whether the host of `url` is this machine, or an entry of `no_proxy` has its name, domain, address or network.

    Source: golang.org/x/net/http/httpproxy, Config.NoProxy.
    """
    host, port = url.hostname or "", url.port or _PORTS.get(url.scheme)
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in no_proxy.lower().replace(" ", "").split(","):
        with_port = _WITH_PORT.fullmatch(entry)
        name, only = with_port.groups() if with_port else (entry, port)
        if entry == "*" or (int(only or 0) == port and (_is_below(host, name) if address is None else _is_in(address, name.strip("[]")))):
            return True
    return False


def _is_below(host: str, name: str) -> bool:
    """Return whether a host has this name, or is below this domain; only the latter with `.example.com` and `*.example.com`."""
    domain = name.removeprefix("*").removeprefix(".")
    return bool(domain) and (host == name or host.endswith(f".{domain}"))


def _is_in(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:  # it is a name
        return False
