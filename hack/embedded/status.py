"""`status`: each component's process and health, and the nodes."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from embedded import control, controlplane
from embedded.api import OK, ApiClient
from embedded.cgroups import Group, group_name, read_hierarchies
from embedded.component import Component
from embedded.errors import ClusterError
from embedded.health import PROBE_SECONDS, is_healthy
from embedded.layout import Layout
from embedded.record import Record, read_record
from embedded.up import components, is_ready, plan_of


@dataclass(frozen=True)
class ComponentStatus:
    """`pid` is the host's, None when it does not run; `state` is one word or an exit code."""

    name: str
    pid: int | None
    state: str


@dataclass(frozen=True)
class ClusterStatus:
    """All that `status` reports."""

    name: str
    state: str
    server: str = ""
    components: tuple[ComponentStatus, ...] = ()
    nodes: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def well(self) -> bool:
        """Whether everything is as it should be."""
        return self.state == "up" and all(one.state == "well" for one in self.components) and set(self.nodes.values()) <= {"Ready"}

    def table(self) -> str:
        """Return it for people."""
        lines = [f"cluster {self.name}: {self.state}" + (f", {self.server}" if self.server else "")]
        lines += [f"  {one.name:<24} {one.pid or '-':>8}  {one.state}" for one in self.components]
        simulated = [state for name, state in self.nodes.items() if name.startswith("kwok-")]
        lines += [f"  node {name:<28}  {state}" for name, state in self.nodes.items() if not name.startswith("kwok-")]
        if simulated:
            lines.append(f"  {simulated.count('Ready')} of {len(simulated)} simulated nodes Ready")
        return "\n".join(lines)


def report(layout: Layout) -> ClusterStatus:
    """Read the status of a cluster."""
    record = read_record(layout)
    if record is None:
        return ClusterStatus(layout.name, "half-made: up starts it anew, down removes it" if layout.root.exists() else "down")
    if control.supervisor_pid(layout) is None:
        return ClusterStatus(layout.name, "crashed: up starts it anew, down removes it")
    plan = plan_of(layout, record)
    processes = control.ask(layout, {"op": "status"})
    pids = _host_pids(layout)

    def check(component: Component) -> ComponentStatus:
        process = processes.get(component.name)
        if process is None or process.exit_code is not None:
            return ComponentStatus(component.name, None, f"ended with {process.exit_code}" if process else "not started")
        return ComponentStatus(component.name, pids.get(process.pid), "well" if is_healthy(layout, component) else "not well")

    with ThreadPoolExecutor() as pool:  # those that do not answer are waited for together
        nodes = pool.submit(_nodes, layout, record)
        found = tuple(pool.map(check, components(plan)))
    state = "up" if record.ready else "starting, or its start was killed"
    return ClusterStatus(layout.name, state, controlplane.api_url(plan), found, nodes.result())


def _host_pids(layout: Layout) -> dict[int, int]:
    """Return the host's number for each process id in the cluster's own namespace."""
    depth = 2
    numbers = dict[int, int]()
    for pid in Group(read_hierarchies(), group_name(layout.root)).processes():
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # From the reader's namespace inwards.
        inwards = [int(number) for line in status.splitlines() if line.startswith("NSpid:") for number in line.split()[1:]]
        if len(inwards) == depth:
            numbers[inwards[1]] = pid
    return numbers


def _nodes(layout: Layout, record: Record) -> dict[str, str]:
    try:
        with ApiClient(layout, record.addresses.node, controlplane.API_PORT, timeout_seconds=PROBE_SECONDS) as api:
            status, answer = api.request("GET", "/api/v1/nodes")
    except ClusterError:
        return {}
    things = answer["items"] if status == OK else []
    return {thing["metadata"]["name"]: "Ready" if is_ready(thing) else "not Ready" for thing in things}
