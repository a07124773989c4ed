"""Requests to an API server over urllib3: with the credentials, certificates and proxy that kubectl would use."""

import json
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlencode

import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning, MaxRetryError, ProxyError, SSLError
from urllib3.util import parse_url

from mpiop import __version__
from mpiop.client.api import Object
from mpiop.client.errors import NoClusterError, UnauthenticatedError
from mpiop.client.proxies import proxy_of_environment
from mpiop.clock import SystemClock
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.credentials import Authenticator
from mpiop.kube.errors import ConfigError
from mpiop.kube.tokens import Credential

TIMEOUT = urllib3.Timeout(connect=10, read=60)
"""Seconds until a connection is made, and between two reads."""

WAITING_SECONDS: Final = 3.0
"""After so long without an answer, the client reports that it waits."""
_MOST_CONNECTIONS: Final = 16
"""That are kept for the next request: jobs under asyncio are asked from many threads."""


class Call(NamedTuple):
    """A request; `what` is what it is about, for errors."""

    method: str
    path: str
    what: str
    query: Mapping[str, str]
    body: Object | None = None


class Connection:
    """Sends requests, from any thread; after a 401 once more if there is a newer credential."""

    def __init__(self, config: ClientConfig, report: Callable[[str], None] | None = None) -> None:
        """Read certificates and token; nothing is sent yet.

        Args:
            config: Where the API server is.
            report: Called once, from another thread, when an answer takes long.

        Raises:
            ConfigError: They cannot be used.
        """
        self.origin = config.origin
        self._config, self._report = config, report
        self._authenticator = Authenticator(config, SystemClock())
        self._proxy = config.proxy_url or proxy_of_environment(config.server)
        self._pool: tuple[ssl.SSLContext | None, urllib3.PoolManager] = (None, self._open_pool(None))
        if config.tls.is_insecure:
            urllib3.disable_warnings(InsecureRequestWarning)  # the user asked for it: a warning with each request helps nobody

    def send(self, call: Call) -> urllib3.BaseHTTPResponse:
        """Send a request and return the answer, of which the head was read.

        Redirects are not followed: they could lead to another host, or to plain HTTP, with the credentials of this one.

        Raises:
            NoClusterError: There is none, or it is a redirect.
            UnauthenticatedError: There is no credential to send.
        """
        try:
            credential = self._authenticator.current()
            answer = self._attempt(call, credential)
            if answer.status == 401 and self._authenticator.refresh(credential):  # noqa: PLR2004 - Unauthorized
                answer.drain_conn()
                answer = self._attempt(call, self._authenticator.current())
        except ConfigError as error:
            raise UnauthenticatedError(str(error)) from error
        except (HTTPError, OSError) as error:
            raise NoClusterError(f"{call.what}: {self._failure(error)}") from error
        if 300 <= answer.status < 400:  # noqa: PLR2004 - redirects
            answer.drain_conn()
            at = f" of {self.origin}" if self.origin else ""
            raise NoClusterError(f"{call.what}: {self._config.server} answers with a redirect ({answer.status}); check server{at}")
        return answer

    def _attempt(self, call: Call, credential: Credential) -> urllib3.BaseHTTPResponse:
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "User-Agent": f"mpiop-client/{__version__}"})
        body = None
        if call.body is not None:
            headers["Content-Type"] = "application/merge-patch+json" if call.method == "PATCH" else "application/json"
            body = json.dumps(call.body, default=_plain)
        for name, value in self._config.headers:
            headers.add(name, value.encode().decode("latin-1"))  # urllib3 sends Latin-1, Go and API servers use UTF-8
        if credential.token:
            headers["Authorization"] = f"Bearer {credential.token}"
        url = self._config.server + call.path + (f"?{urlencode(call.query, safe='/', quote_via=quote)}" if call.query else "")
        pool = self._pool_of(self._authenticator.context(credential))
        with self._reporting(call):
            return pool.request(call.method, url, body=body, headers=headers, timeout=TIMEOUT, preload_content=False, redirect=False)

    @contextmanager
    def _reporting(self, call: Call) -> Generator[None]:
        """Report that the answer takes long, once; a followed log may begin with silence."""
        if self._report is None or "follow" in call.query:
            yield
            return
        timer = threading.Timer(WAITING_SECONDS, self._report_waiting)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _report_waiting(self) -> None:
        report, self._report = self._report, None
        if report is not None:
            report(f"waiting for the API server {self._config.server}")

    def _pool_of(self, context: ssl.SSLContext | None) -> urllib3.PoolManager:
        """Return connections of `context`; changed certificates make another one."""
        if self._pool[0] is not context:
            self._pool = (context, self._open_pool(context))
        return self._pool[1]

    def _open_pool(self, context: ssl.SSLContext | None) -> urllib3.PoolManager:
        options: dict[str, Any] = {"maxsize": _MOST_CONNECTIONS} | ({"ssl_context": context} if context else {})
        if self._config.tls.server_name:
            options["server_hostname"] = self._config.tls.server_name
        if not self._proxy:
            return urllib3.PoolManager(**options)
        password = parse_url(self._proxy).auth
        headers = urllib3.make_headers(proxy_basic_auth=unquote(password)) if password else None
        return urllib3.ProxyManager(self._proxy, proxy_headers=headers, **options)

    def _failure(self, error: Exception) -> str:
        reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        if isinstance(reason, SSLError):
            why = getattr(reason.args[0], "verify_message", "") or str(reason)
            at = f" of {self.origin}" if self.origin else ""
            return f"the certificate of {self._config.server} cannot be verified: {why}; check server and certificate-authority{at}"
        if isinstance(reason, ProxyError):
            return f"the proxy does not connect to {self._config.server}: {reason.original_error}"
        return f"the API server does not answer ({type(reason).__name__}). Is the cluster up?"


def _plain(value: Any) -> str:
    """Return what YAML reads as a date in the form of JSON."""
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
