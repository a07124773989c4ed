"""Asking components whether they are healthy."""

import http.client
import socket
import time
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from embedded import control
from embedded.api import OK, client_context
from embedded.component import Component
from embedded.errors import ClusterError
from embedded.layout import Layout

PROBE_SECONDS = 2
POLL_SECONDS = 0.05
UNIX = "unix:"


def is_healthy(layout: Layout, component: Component) -> bool:
    """Return whether `component` reports now that it is healthy."""
    try:
        if component.health.startswith(UNIX):
            return _accepts(Path(component.health.removeprefix(UNIX)))
        return _answers(layout, urlsplit(component.health))
    except (OSError, http.client.HTTPException):
        return False


def wait_until_healthy(layout: Layout, component: Component, deadline_seconds: float) -> None:
    """Wait until `component` is healthy.

    Raises:
        ClusterError: It ended, or is not ready after `deadline_seconds`.
    """
    deadline = time.monotonic() + deadline_seconds
    while not is_healthy(layout, component):
        exit_code = control.ask(layout, {"op": "status"})[component.name].exit_code
        if exit_code is not None or time.monotonic() > deadline:
            state = f"is not ready after {deadline_seconds:.0f} s" if exit_code is None else f"ended with {exit_code}"
            raise ClusterError(f"{component.name} {state}: {last_words(layout, component.name)} (more in {layout.log(component.name)})")
        time.sleep(POLL_SECONDS)


def last_words(layout: Layout, name: str) -> str:
    """Return the last line that looks like an error in the log of a component, else its last line."""
    log = layout.log(name)
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-50:] if log.exists() else []
    errors = [line for line in lines if line.startswith(("E", "F", "Error", "error", "panic")) or '"level":"fatal"' in line]
    return (errors or lines or ["it wrote nothing"])[-1][:300]


def _accepts(path: Path) -> bool:
    with control.socket_address(path) as address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PROBE_SECONDS)
        connection.connect(address)
    return True


def _answers(layout: Layout, url: SplitResult) -> bool:
    if url.scheme == "https":
        context = client_context(layout.certificates)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(url.netloc, timeout=PROBE_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(url.netloc, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", url.path)
        return connection.getresponse().status == OK
    finally:
        connection.close()
