"""Kubeflow's MPI Operator, which is written in Go, built from its released module to be measured beside ours."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final, cast

from bench.operator_process import Program
from bench.place import Place
from e2e.neighbours import build_program
from faults.ground import NAMESPACE
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import Resource

_UNBOUNDED: Final = 1_000_000
_THROTTLES: Final = ("kube-api-qps", "kube-api-burst", "controller-queue-rate-limit", "controller-queue-burst")
_BINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_READY_URL: Final = "http://127.0.0.1:8080/healthz"  # it knows no flag for that port


async def reference() -> Program:
    """Return it with its default two threads, and without its own throttles."""
    path = await asyncio.to_thread(build_program, "kubeflow-mpi-operator")
    return Program((str(path), *(f"--{name}={_UNBOUNDED}" for name in _THROTTLES)), _READY_URL)


@contextlib.asynccontextmanager
async def with_its_rights(here: Place) -> AsyncIterator[None]:
    """Let whoever has the operator's service account do anything: its own rights differ from ours."""
    body: Any = {
        "apiVersion": _BINDINGS.api_version,
        "kind": _BINDINGS.kind,
        "metadata": {"name": "bench-reference"},
        "roleRef": {"apiGroup": _BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}],
    }
    made = await here.client.create(_BINDINGS, cast("Object", body))
    yield
    await here.client.delete(_BINDINGS, Key("", "bench-reference"), uid=uid_of(made))
