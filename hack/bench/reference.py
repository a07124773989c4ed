"""Kubeflow's MPI Operator, which is written in Go, built from its released module to be measured next to ours."""

import asyncio
import functools
from pathlib import Path
from typing import Final

from bench.bench_cluster import BenchCluster
from bench.operator_process import Program
from demonstration.cluster import environment_of
from e2e.neighbours import build_program
from faults.testbed import NAMESPACE, command

_UNBOUNDED: Final = 1_000_000
_THROTTLES: Final = ("kube-api-qps", "kube-api-burst", "controller-queue-rate-limit", "controller-queue-burst")
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
    environment = environment_of(here.cluster)
    granted = ("clusterrolebinding", "bench-reference", "--clusterrole=cluster-admin", f"--serviceaccount={NAMESPACE}:{NAMESPACE}")
    binding = await command("kubectl", "create", *granted, "--dry-run=client", "--output=json", environment=environment)
    await command("kubectl", "apply", "--filename=-", stdin=binding, environment=environment)  # it may have been started there before
