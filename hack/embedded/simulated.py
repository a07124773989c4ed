"""Simulated nodes: kwok plays their kubelets. `stages.yaml` defines how; see there for what pods can ask for."""

from pathlib import Path
from typing import Any

from embedded.component import Component, Plan

STAGES = Path(__file__).resolve().parent / "stages.yaml"
PORT = 10247
LABEL = "type=kwok"
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"}


def kwok(plan: Plan) -> Component:
    """Return the simulator; it keeps its hands off nodes without its label, which are real."""
    arguments = (
        f"--kubeconfig={plan.config('kwok.kubeconfig')}",
        f"--config={plan.config('stages.yaml')}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-label-selector={LABEL}",
        f"--cidr={plan.addresses.simulated_pods}",
        f"--node-ip={plan.addresses.node}",
        "--node-lease-duration-seconds=40",
        "--v=WARN",  # else a line for every change of every pod
        f"--server-address=0.0.0.0:{PORT}",
    )
    return Component("kwok", "kwok", arguments, f"http://{plan.addresses.node}:{PORT}/healthz")


def simulated_node(index: int, *, tainted: bool) -> dict[str, Any]:
    """Return the Node number `index`. Next to a real node it is tainted, so that only pods which ask for it come."""
    name = f"kwok-{index}"
    taints = [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node-role.kubernetes.io/agent": "",
            },
        },
        "spec": {"taints": taints} if tainted else {},
        "status": {
            "allocatable": CAPACITY,
            "capacity": CAPACITY,
            "nodeInfo": {
                "architecture": "amd64",
                "containerRuntimeVersion": "kwok",
                "kernelVersion": "kwok",
                "kubeletVersion": "kwok",
                "operatingSystem": "linux",
                "osImage": "kwok",
            },
        },
    }
