"""Which components a cluster has, and when its nodes are ready."""

from dataclasses import replace
from pathlib import Path

import pytest

from embedded import controlplane, node
from embedded.component import Plan
from embedded.layout import Layout
from embedded.parts import CONTROL_PLANE, NODE, SIMULATED
from embedded.record import Options, Record
from embedded.up import components, desired_parts, is_ready

PLAN = Plan(Layout("x", Path("/state/x")), Record(Options(), 3, programs={}), may_lower_oom_score=True)


def with_options(**options: object) -> Plan:
    return replace(PLAN, record=replace(PLAN.record, options=Options(**options)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (Options(), (*CONTROL_PLANE, *NODE)),
        (Options(control_plane_only=True), CONTROL_PLANE),
        (Options(control_plane_only=True, simulated_nodes=1), (*CONTROL_PLANE, *SIMULATED)),
    ],
    ids=["a real node", "a control plane", "a control plane with simulated nodes"],
)
def test_only_what_is_used_is_built(options: Options, parts: tuple[str, ...]) -> None:
    assert desired_parts(options) == parts


def test_a_second_node_shares_no_name_file_or_address_with_the_first() -> None:
    plan = with_options(nodes=2)
    known = components(plan)
    assert len({component.name for component in known}) == len(known) == 12
    assert len({component.health for component in known}) == len(known)
    first, second = (node.config_files(plan, each) for each in plan.nodes)
    assert not first.keys() & second.keys()
    assert not {*first.values()} & {*second.values()}
    files = [leaf.file for leaf in controlplane.leaves(plan)]
    assert len(set(files)) == len(files)
    assert {leaf.common_name for leaf in controlplane.leaves(plan)} >= {"system:node:mpiop-x", "system:node:mpiop-x-2"}


READY = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("thing", "ready"),
    [
        ({"spec": {}, "status": {"conditions": [READY]}}, True),
        ({"spec": {}, "status": {"conditions": [{**READY, "status": "False"}]}}, False),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}, "status": {"conditions": [READY]}}, False),
        ({"spec": {"taints": [{"key": "kwok.x-k8s.io/node"}]}, "status": {"conditions": [READY]}}, True),
        ({"spec": {}, "status": {}}, False),
        ({"kind": "Status", "status": "Failure"}, False),
    ],
    ids=["ready", "not ready", "the taint has not gone yet", "a taint of its own", "never reported", "no node"],
)
def test_is_ready(thing: dict[str, object], ready: bool) -> None:  # noqa: FBT001 - a table
    assert is_ready(thing) is ready
