"""What other people's large objects cost an operator, in a process of its own: memory, and the service of everybody else."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from example_jobs import SSHD
from fakes.rest_server import RestServer, rest_server
from fakes.world import mpijob
from mpiop.kube.objects import Key
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS

pytestmark = pytest.mark.real_time

ROOT = Path(__file__).resolve().parents[2]
SPEC_BYTES = 1_390_000
PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.05
ANOTHER_MANAGER = {"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True}
SUSPENDED = {"suspend": True}
ENDED = {"conditions": [{"type": type_, "status": "True"} for type_ in ("Created", "Succeeded")], "completionTime": "2026-01-01T00:00:00Z"}


def large_spec(number: int, run_policy: dict[str, Any]) -> bytes:
    """Return the JSON of a spec of many small objects, which differs from all others."""
    variables = [{"name": f"v{index}"} for index in range(SPEC_BYTES // 18)]
    launcher = {"spec": {"containers": [{"name": "mpi", "image": f"image-{number}", "env": variables}]}}
    replicas = {"Launcher": {"template": launcher}, "Worker": {"replicas": 1, "template": SSHD}}
    return msgspec.json.encode({"mpiReplicaSpecs": replicas, "runPolicy": run_policy})


class Case(NamedTuple):
    """Large jobs.

    Attributes:
        most_mib: Resident memory that the operator may use; 58 MiB are its own.
    """

    id: str
    count: int
    run_policy: dict[str, Any]
    status: dict[str, Any]
    most_mib: float


CASES = [
    Case("another manager's, more than are kept", 100, ANOTHER_MANAGER, {}, 300.0),
    Case("suspended", 5, SUSPENDED, {}, 300.0),
    Case("ended", 5, {}, ENDED, 300.0),
]


def peak_mib(pid: int) -> float:
    """Return the most memory that a process ever had."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmHWM:"))


@asynccontextmanager
async def operator(server: str) -> AsyncIterator[int]:
    """Run an operator against `server`; return the number of its process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mpiop", f"--master={server}", "--health-port=0", "--log-level=error"),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        yield process.pid
        assert process.returncode is None, "it ended by itself"
    finally:
        process.kill()
        await process.wait()


async def until(is_true: Callable[[], bool]) -> None:
    """Wait for it."""
    for _ in range(int(PATIENCE_SECONDS / LOOK_SECONDS)):
        if is_true():
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise TimeoutError


def is_served(rest: RestServer, name: str) -> bool:
    """Return whether a job has its objects and its status."""
    job = rest.api.storage.get(MPIJOBS, Key("default", name)) or {}
    pods = [pod for pod in rest.api.storage.all(PODS) if pod["metadata"]["name"].startswith(f"{name}-worker-")]
    return bool(job.get("status")) and len(pods) == 2 and rest.api.storage.get(JOBS, Key("default", f"{name}-launcher")) is not None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_large_jobs_cost_little_memory_and_everybody_else_is_served(case: Case) -> None:
    names = [f"large-{number}" for number in range(case.count)]
    async with rest_server({name: large_spec(number, case.run_policy) for number, name in enumerate(names)}) as (rest, http):
        for name in names:
            rest.api.put(MPIJOBS, {**mpijob(name), "spec": {"large": name}, "status": case.status})
        rest.api.put(MPIJOBS, mpijob("small"))
        async with operator(http.url) as pid:
            await until(lambda: is_served(rest, "small"))
            rest.api.put(MPIJOBS, mpijob("late"))
            await until(lambda: is_served(rest, "late"))
            if case.run_policy is SUSPENDED:
                rest.large[names[0]] = msgspec.Raw(large_spec(0, {}))
                resumed = rest.api.storage.get(MPIJOBS, Key("default", names[0])) or {}
                rest.api.put(MPIJOBS, {**resumed, "metadata": {**resumed["metadata"], "generation": 2}})
                await until(lambda: rest.api.storage.get(JOBS, Key("default", f"{names[0]}-launcher")) is not None)
            assert peak_mib(pid) <= case.most_mib


async def test_config_maps_with_our_label_and_a_long_owner_cost_no_memory() -> None:
    labels = {"training.kubeflow.org/operator-name": "mpi-operator"}
    async with rest_server({}) as (rest, http):
        for number in range(60):
            owner = {"apiVersion": "v1", "kind": "Nothing", "name": "\U0001f600" + "x" * 500_000, "uid": str(number), "controller": True}
            metadata = {"name": f"c{number}", "namespace": "default", "labels": labels, "ownerReferences": [owner]}
            data = {"hostfile": str(number) * 500_000, "other": str(number) * 500_000}
            rest.api.put(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        rest.api.put(MPIJOBS, mpijob("small"))
        async with operator(http.url) as pid:
            await until(lambda: is_served(rest, "small"))
            assert peak_mib(pid) <= 100.0
