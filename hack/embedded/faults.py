"""Commands that stop, start, freeze and kill single components: what fault tests are made of."""

import argparse
import signal

from embedded import control, health, second_node
from embedded.component import SECOND_NODE, Component
from embedded.errors import ClusterError
from embedded.layout import Layout
from embedded.locks import locked
from embedded.record import Record, read_record
from embedded.up import components, plan_of

STOP_SECONDS, START_SECONDS = 30.0, 60.0
SIGNALS = {"pause": signal.SIGSTOP, "resume": signal.SIGCONT}


def run(layout: Layout, parsed: argparse.Namespace) -> int:
    """Do what the command is called to a component; one that is started has become healthy."""
    if parsed.command in SIGNALS:
        _, component = _find(layout, parsed.component)
        control.send_signal(layout, component.name, SIGNALS[parsed.command])
        return 0
    with locked(layout.lock):
        record, component = _find(layout, parsed.component)
        if parsed.command != "start":
            _end(layout, component, kill=parsed.kill)
        if parsed.command != "stop":
            _start(layout, record, component)
    return 0


def _find(layout: Layout, name: str) -> tuple[Record, Component]:
    record = read_record(layout)
    if record is None:
        raise ClusterError(f"no cluster {layout.name!r}; start it with: hack/cluster up --name {layout.name}")
    known = {component.name: component for component in components(plan_of(layout, record))}
    if name not in known:
        raise ClusterError(f"no component {name!r} in cluster {layout.name!r}; there are {', '.join(known)}")
    return record, known[name]


def _end(layout: Layout, component: Component, *, kill: bool) -> None:
    """End the component; the second node ends with all that runs on it, as when its power fails."""
    if component.name == SECOND_NODE:
        second_node.group(layout).kill(STOP_SECONDS)
    else:
        control.send_signal(layout, component.name, signal.SIGKILL if kill else signal.SIGTERM)
        control.send_signal(layout, component.name, signal.SIGCONT)  # a frozen one could not receive the first
    control.await_end(layout, component.name, STOP_SECONDS)


def _start(layout: Layout, record: Record, component: Component) -> None:
    """Start the component; the second node starts with all that runs on it."""
    for each in (component, *(each for each in components(plan_of(layout, record)) if each.node == component.name)):
        control.start(layout, record, each)
        health.wait_until_healthy(layout, each, START_SECONDS)
