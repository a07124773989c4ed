"""`nodes`: shows the resources of each node, and how much of them is free."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import click

from mpiop.client.api import Api
from mpiop.client.errors import ForbiddenError
from mpiop.client.progress import is_ready
from mpiop.kube.quantity import value_of
from mpiop.kube.resources import PODS
from mpiop.kubectl.output import print_table, report_none
from mpiop.kubectl.session import Session, cluster_options

Object = Mapping[str, Any]
Amounts = Counter[str]
_RUNNING: Final = "?fieldSelector=status.phase!=Succeeded,status.phase!=Failed"
_MILLI: Final = 1000
"""Amounts are counted in thousandths, so that sums of CPUs stay exact."""
_DEVICES: Final = ("gpu", "rdma", "fpga", "tpu", "hca")
"""Parts of the names of resources that are devices."""


@click.command("nodes")
@cluster_options()
def nodes_verb(session: Session) -> None:
    """Show free and total CPUs, memory and devices of each node, as sinfo does.

    Free resources are those that no Pod has requested. STATE shows what keeps Pods away.
    """
    api = session.api()
    nodes: Sequence[Object] = sorted(api.get("/api/v1/nodes")["items"], key=lambda node: node["metadata"]["name"])
    if not nodes:
        report_none("nodes", "")
        return
    pods, gap = _visible_pods(api)
    print_table(*_table(nodes, None if pods is None else used_by_node(pods)))
    if gap:
        click.echo(gap, err=True)


def _visible_pods(api: Api) -> tuple[Sequence[Object] | None, str]:
    """Return the Pods that the user may list, None if there are none, and what is missing among them."""
    try:
        return api.get(f"{PODS.path()}{_RUNNING}")["items"], ""
    except ForbiddenError:
        pass
    try:
        found = api.get(f"{PODS.path(api.namespace)}{_RUNNING}")["items"]
    except ForbiddenError:
        return None, f"You may not list Pods, in namespace {api.namespace} either: only totals are shown."
    return found, f"You may list Pods of namespace {api.namespace} only: less is free if Pods of other namespaces run on these nodes."


def used_by_node(pods: Iterable[Object]) -> Mapping[str, Amounts]:
    """Return what the Pods on each node request, and their number as `pods`."""
    used: dict[str, Amounts] = {}
    for pod in pods:
        if node := pod["spec"].get("nodeName"):
            used.setdefault(node, Counter()).update(pod_requests(pod["spec"]) + Counter(pods=_MILLI))
    return used


def pod_requests(spec: Object) -> Amounts:
    """Return what a Pod requests, in thousandths.  Source: k8s.io/component-helpers/resource, PodRequests."""
    sidecars: Amounts = Counter()
    peak: Amounts = Counter()
    for container in spec.get("initContainers") or ():
        wanted = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars += wanted
            peak |= sidecars
        else:
            peak |= wanted + sidecars
    running = sum((_requests(each) for each in spec["containers"]), sidecars)
    of_pod = _requests(spec)
    total = Counter({**(running | peak), **of_pod})
    return total + _amounts(spec.get("overhead"))


def _requests(of: Object) -> Amounts:
    """Return the requests of a container, or of a Pod as a whole."""
    resources: Object = of.get("resources") or {}
    return _amounts(resources.get("requests"))


def _amounts(quantities: Mapping[str, str] | None) -> Amounts:
    return Counter({name: int(value_of(str(quantity)) * _MILLI) for name, quantity in (quantities or {}).items()})


def _table(nodes: Sequence[Object], used: Mapping[str, Amounts] | None) -> tuple[list[str], list[list[str]]]:
    totals = {node["metadata"]["name"]: _amounts(node["status"].get("allocatable")) for node in nodes}
    devices = sorted({name for total in totals.values() for name in total if total[name] and any(part in name for part in _DEVICES)})
    shown = ["cpu", "memory", *devices, "pods"]
    rows: list[list[str]] = []
    for node in nodes:
        name = node["metadata"]["name"]
        free = None if used is None else {each: totals[name][each] - used.get(name, Counter())[each] for each in shown}
        rows.append([name, state_of(node), *(_cell(each, totals[name][each], free) for each in shown)])
    return ["NODE", "STATE", *map(str.upper, shown)], rows


def _cell(resource: str, total: int, free: Mapping[str, int] | None) -> str:
    """Return `free/total`, or only the total where nobody knows what is free."""
    text = _text(resource, total)
    return text if free is None else f"{_text(resource, max(0, free[resource]))}/{text}"


def _text(resource: str, amount: int) -> str:
    number = Fraction(amount, _MILLI)
    return f"{float(number / 2**30):.1f}Gi" if resource == "memory" else f"{float(number):g}"


def state_of(node: Object) -> str:
    """Return whether a node is Ready, and what keeps Pods away: cordoned, or taints."""
    spec: Object = node.get("spec") or {}
    words = ["Ready" if is_ready(node) else "NotReady"]
    words += ["SchedulingDisabled"] if spec.get("unschedulable") else []
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") != "PreferNoSchedule"]
    own = "node.kubernetes.io/"
    words += [f"taint:{taint['key']}" for taint in taints if not taint["key"].startswith(own)]
    return ",".join(words)
