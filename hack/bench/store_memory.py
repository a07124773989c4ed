"""How much memory a store of 10,000 of our Pods takes over an empty one.

The Pods are those that the operator makes, with what an API server and a kubelet add. Another process writes them down, so that making them
leaves no trace here; they are read and decoded one page after the other, as the client does it.
"""

import gc
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from mpiop.api.parse import parse_mpijob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.worker_pod import worker_builder
from mpiop.controller.observe import projections
from mpiop.controller.observe.observed import BY_CONTROLLER, index_by_controller
from mpiop.informers.compaction import preparation
from mpiop.informers.store import Store
from mpiop.kube.answers import Head, decode
from mpiop.kube.request import Request
from mpiop.kube.resources import PODS

PODS_STORED = 10_000
LIMIT_MIB = 40
WORKERS = 100
PAGE = 500
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def main() -> int:
    """Fill a store, print what that took, and return 1 when it is more than allowed."""
    with tempfile.TemporaryDirectory(prefix="mpiop-bench-") as directory:
        writer = multiprocessing.get_context("spawn").Process(target=write_pages, args=(Path(directory),))
        writer.start()
        writer.join()
        return measure(sorted(Path(directory).iterdir()))


def measure(pages: list[Path]) -> int:
    """Fill a store from `pages` and print its memory; return 1 when that is more than allowed."""
    store, prepare = Store({BY_CONTROLLER: index_by_controller}), preparation(trim=projections.trimmed)
    gc.collect()
    before, begun = resident_mib(), time.perf_counter()
    kept: list[Any] = []
    request, head = Request("list", PODS, projection=projections.Pod), Head(200, {})
    for page in pages:
        kept += [prepared for item in decode(request, head, page.read_bytes())["items"] if (prepared := prepare(item)) is not None]
    store.replace(kept, "1")
    del kept
    gc.collect()
    used = resident_mib() - before
    seconds = time.perf_counter() - begun
    each = used * 1024 / len(store)
    print(f"{len(store)} pods: {used:.1f} MiB ({each:.2f} KiB each), allowed {LIMIT_MIB} MiB; read and stored in {seconds:.1f} s")
    return 0 if used <= LIMIT_MIB and len(store) == PODS_STORED else 1


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def write_pages(directory: Path) -> None:
    """Write the pods into files of a page each."""
    for first in range(0, PODS_STORED, PAGE):
        page = [running_pod(number) for number in range(first, first + PAGE)]
        (directory / f"{first:08d}.json").write_bytes(msgspec.json.encode({"metadata": {}, "items": page}))


def running_pod(number: int) -> dict[str, Any]:
    """Return a worker pod that runs, as the API server would list it."""
    job_number, index = divmod(number, WORKERS)
    job = parse_mpijob(_mpijob(f"job-{job_number}", f"{job_number:036d}"))
    pod: dict[str, Any] = dict(worker_builder(job, BuildOptions())(index))
    stamp = f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z"
    pod["metadata"] = pod["metadata"] | {
        "uid": f"{number:08d}-40d5-491e-99b0-{number:012d}",
        "resourceVersion": str(1_000_000 + number),
        "creationTimestamp": stamp,
        "generation": 1,
        "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:{field}": {"f:x": {}} for field in range(60)}}],
    }
    pod["spec"] = pod["spec"] | {"nodeName": f"node-{number % 500}", "serviceAccountName": "default", "schedulerName": "default-scheduler"}
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    pod["status"] = {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp} for kind in _CONDITIONS],
        "hostIP": f"192.168.{number % 500 >> 8}.{number % 256}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": stamp,
        "qosClass": "BestEffort",
        "containerStatuses": [
            {
                "name": "worker",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": "mpiop.invalid/mpi-pi:openmpi",
                "imageID": "mpiop.invalid/mpi-pi@sha256:" + "a" * 64,
                "containerID": f"containerd://{number:064d}",
                "state": {"running": {"startedAt": stamp}},
                "lastState": {},
            }
        ],
    }
    return pod


def _mpijob(name: str, uid: str) -> Any:
    container = {
        "name": "mpi",
        "image": "mpiop.invalid/mpi-pi:openmpi",
        "env": [{"name": f"VARIABLE_{n}", "value": "value" * 4} for n in range(10)],
    }
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "default", "uid": uid, "generation": 1},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}, "Worker": {"replicas": WORKERS, "template": template}}},
    }


if __name__ == "__main__":
    sys.exit(main())
