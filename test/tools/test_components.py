"""What a cluster is built of, and when its nodes are ready."""

import pytest

from embedded.parts import CONTROL_PLANE, NODE, SIMULATED
from embedded.record import Options
from embedded.up import desired_parts, is_ready


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
