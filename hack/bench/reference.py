"""Kubeflow's MPI Operator, which is written in Go, built from its released module to be measured next to ours."""

import asyncio
import functools
from pathlib import Path
from typing import Any, Final, cast

from bench.bench_cluster import BenchCluster
from bench.operator_process import Program
from e2e.neighbours import build_program
from faults.testbed import NAMESPACE
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Object
from mpiop.kube.resources import Resource

_UNBOUNDED: Final = 1_000_000
_THROTTLES: Final = ("kube-api-qps", "kube-api-burst", "controller-queue-rate-limit", "controller-queue-burst")
_BINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_READY_URL: Final = "http://127.0.0.1:8080/healthz"  # it knows no flag for that port


async def reference() -> Program:
    """Return it with its default two threads, and without its own throttles."""
    path = await asyncio.to_thread(_build)
    flags = (f"--{name}={_UNBOUNDED}" for name in _THROTTLES)
    return Program("reference", (str(path), *flags), _READY_URL)


@functools.cache
def _build() -> Path:
    return build_program("kubeflow-mpi-operator")


async def give_rights(here: BenchCluster) -> None:
    """Let the operator's service account do anything on that embedded cluster: its own rights differ from ours."""
    body: Any = {
        "apiVersion": _BINDINGS.api_version,
        "kind": _BINDINGS.kind,
        "metadata": {"name": "bench-reference"},
        "roleRef": {"apiGroup": _BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}],
    }
    try:
        await here.client.create(_BINDINGS, cast("Object", body))
    except StatusError as error:
        if not error.is_already_exists:  # it was started there before
            raise
