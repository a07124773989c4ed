"""Children of the example job as a cluster would show them."""

from typing import Any

from example_jobs import PI
from mpiop.api.names import worker_name
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import build_config_map, with_digests
from mpiop.controller.objects.launcher_job import build_launcher_job
from mpiop.controller.objects.service import build_service
from mpiop.controller.objects.worker_pod import worker_builder
from mpiop.controller.observe.launcher_failures import LauncherFailures
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.restart.policy import launcher_limits
from mpiop.kube.objects import Object

OPTIONS = BuildOptions()
LAUNCHER_UID = "a0b8e4fd-0d54-4d0f-8b3e-3f7f2cbd6a11"
TERMINATING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def stored(obj: Object, uid: str, **metadata: Any) -> Object:
    """Return `obj` with what the server adds."""
    obj["metadata"].update({"uid": uid, "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"})
    obj["metadata"].update(metadata)  # type: ignore[typeddict-item]  # a test sets which fields
    return obj


def build_worker_pod(job: MPIJob, index: int, options: BuildOptions) -> Object:
    """Return the worker pod with that index."""
    return worker_builder(job, options)(index)


def worker(index: int, phase: str = "Running", *, job: MPIJob = PI, metadata: dict[str, Any] | None = None, **status: Any) -> Object:
    """Return a worker pod in `phase`; a running one is Ready unless `status` has conditions."""
    pod = stored(build_worker_pod(job, index, OPTIONS), f"worker-{index}", **(metadata or {}))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]} if phase == "Running" else {}
    pod["status"] = {"phase": phase, **ready, **status}
    return pod


def launcher(*, job: MPIJob = PI, suspend: bool = False, outcome: dict[str, str] | None = None, **status: Any) -> Object:
    """Return the launcher Job; `outcome` is its condition Complete or Failed."""
    obj = stored(build_launcher_job(job, OPTIONS, limits=launcher_limits(job), suspend=suspend), LAUNCHER_UID)
    obj["status"] = {**status, **({"conditions": [{"status": "True", **outcome}]} if outcome else {})}
    return obj


def launcher_pod(phase: str = "Running", *, name: str = "pi-launcher-x", metadata: dict[str, Any] | None = None, **status: Any) -> Object:
    """Return a pod of the launcher Job."""
    template = launcher()["spec"]["template"]
    labels, annotations = template["metadata"]["labels"], template["metadata"]["annotations"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "uid": LAUNCHER_UID, "controller": True}
    own = {"name": name, "namespace": PI.namespace, "labels": labels, "annotations": annotations, "ownerReferences": [owner]}
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": template["spec"]}  # type: ignore[typeddict-item]  # built by key
    pod["status"] = {"phase": phase, **status}
    return stored(pod, name, **(metadata or {}))


def service(job: MPIJob = PI) -> Object:
    """Return the Service."""
    return stored(build_service(job), "service")


def config_map(*running: str, job: MPIJob = PI) -> Object:
    """Return the ConfigMap with those workers running, which notes that the Secret exists."""
    obj = build_config_map(job, running, OPTIONS)
    obj["metadata"]["annotations"] = {names.ANNOTATION_SECRET_UID: "secret"}
    return stored(obj, "config-map")


def failures_of(*launcher_pods: Object, job: MPIJob = PI) -> LauncherFailures:
    """Return how the launcher of a job with these pods has failed."""
    return launcher_attempt(job, observed(launcher_pods=launcher_pods)).failures


def observed(*workers: Object, job: MPIJob = PI, launcher: Object | None = None, launcher_pods: tuple[Object, ...] = ()) -> Observed:
    """Return an observation with Service and ConfigMap as they should be."""
    running = [
        worker_name(job.name, index)
        for index, pod in enumerate(workers[: job.worker_replicas])
        if pod.get("status", {}).get("phase") == "Running"
    ]
    return Observed(
        service=service(job),
        config_map=with_digests(config_map(*running, job=job)),
        launcher=launcher,
        launcher_pods=launcher_pods,
        workers={pod["metadata"]["name"]: pod for pod in workers},
    )
