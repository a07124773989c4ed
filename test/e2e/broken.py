"""Jobs that are broken, each in one way that a user's may be."""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from e2e.jobs import pi_job
from e2e.kubectl import Kubectl, Obj

FALSE = ["/bin/sh", "-c", "exit 3"]
NO_SANDBOX = "mpiop-no-sandbox"
"""A RuntimeClass whose handler no node has."""
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "no-such-class", "resources": {"requests": {"storage": "1Gi"}}}


class Broken(NamedTuple):
    """A job that `spoil` breaks; its condition has `reason`, and `words` in its message."""

    id: str
    spoil: Callable[[Obj, Obj], None]
    reason: str
    words: str


def container(role: Obj) -> Obj:
    """Return the first container of a role."""
    first: Obj = role["template"]["spec"]["containers"][0]
    return first


def with_volume(role: Obj, **source: Obj) -> None:
    """Mount a volume of that source."""
    role["template"]["spec"]["volumes"] = [{"name": "data", **source}]
    container(role)["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]


def with_init(role: Obj, **more: object) -> None:
    """Add an init container that fails."""
    role["template"]["spec"]["initContainers"] = [{"name": "prepare", "image": container(role)["image"], "command": FALSE, **more}]


def unknown_image(_launcher: Obj, worker: Obj) -> None:
    container(worker)["image"] = "localhost/no-such-image:1"


def missing_secret(_launcher: Obj, worker: Obj) -> None:
    container(worker)["envFrom"] = [{"secretRef": {"name": "no-such-secret"}}]


def missing_config_map_of_the_launcher(launcher: Obj, _worker: Obj) -> None:
    container(launcher)["envFrom"] = [{"configMapRef": {"name": "no-such-config"}}]


def missing_volume(_launcher: Obj, worker: Obj) -> None:
    with_volume(worker, configMap={"name": "no-such-volume"})


def missing_claim(_launcher: Obj, worker: Obj) -> None:
    with_volume(worker, persistentVolumeClaim={"claimName": "no-such-claim"})


def unbound_claim(_launcher: Obj, worker: Obj) -> None:
    with_volume(worker, ephemeral={"volumeClaimTemplate": {"spec": CLAIM}})


def too_much_memory(_launcher: Obj, worker: Obj) -> None:
    container(worker)["resources"] = {"requests": {"memory": "9Ti"}}


def no_priority_class(_launcher: Obj, worker: Obj) -> None:
    worker["template"]["spec"]["priorityClassName"] = "no-such-priority"


def no_runtime_class(_launcher: Obj, worker: Obj) -> None:
    worker["template"]["spec"]["runtimeClassName"] = "no-such-runtime"


def no_sandbox(_launcher: Obj, worker: Obj) -> None:
    worker["template"]["spec"]["runtimeClassName"] = NO_SANDBOX


def failing_init_container(_launcher: Obj, worker: Obj) -> None:
    with_init(worker)


def failing_sidecar(launcher: Obj, worker: Obj) -> None:
    with_init(worker, restartPolicy="Always")
    container(launcher)["command"] = ["sleep", "600"]  # sshd runs next to it, so the job would succeed
    container(launcher).pop("args")


def failing_init_container_of_the_launcher(launcher: Obj, _worker: Obj) -> None:
    with_init(launcher)


def worker_that_ends(_launcher: Obj, worker: Obj) -> None:
    container(worker)["command"] = FALSE


def worker_that_crashes(_launcher: Obj, worker: Obj) -> None:
    worker["restartPolicy"] = "OnFailure"
    container(worker)["command"] = FALSE


def worker_without_memory(_launcher: Obj, worker: Obj) -> None:
    container(worker)["command"] = ["/bin/sh", "-c", "tail /dev/zero"]
    container(worker)["resources"] = {"limits": {"memory": "24Mi"}}


def unready_worker(_launcher: Obj, worker: Obj) -> None:
    container(worker)["readinessProbe"] = {"exec": {"command": ["false"]}, "periodSeconds": 1}


def crashing_launcher(launcher: Obj, _worker: Obj) -> None:
    launcher["restartPolicy"] = "OnFailure"
    container(launcher)["command"] = FALSE


def launcher_without_command(launcher: Obj, _worker: Obj) -> None:
    launcher["restartPolicy"] = "OnFailure"
    container(launcher)["command"] = ["no-such-command"]


def working_directory_in_a_file(_launcher: Obj, worker: Obj) -> None:
    container(worker)["workingDir"] = "/etc/passwd/no-directory"


BROKEN = [
    Broken("no-image", unknown_image, "ImagePull", "localhost/no-such-image:1"),
    Broken("no-secret", missing_secret, "CreateContainerConfigError", 'secret "no-such-secret" not found'),
    Broken("no-config", missing_config_map_of_the_launcher, "CreateContainerConfigError", 'configmap "no-such-config" not found'),
    Broken("no-volume", missing_volume, "FailedMount", 'configmap "no-such-volume" not found'),
    Broken("no-claim", missing_claim, "Unschedulable", 'persistentvolumeclaim "no-such-claim" not found'),
    Broken("unbound", unbound_claim, "Unschedulable", "pod has unbound immediate PersistentVolumeClaims"),
    Broken("no-room", too_much_memory, "Unschedulable", "Insufficient memory"),
    Broken("no-priority", no_priority_class, "Forbidden", "no PriorityClass with name no-such-priority was found"),
    Broken("no-runtime", no_runtime_class, "Forbidden", 'RuntimeClass "no-such-runtime" not found'),
    Broken("no-sandbox", no_sandbox, "FailedCreatePodSandBox", "no runtime for"),
    Broken("init", failing_init_container, "InitContainerFailed", "container prepare of pod init-worker-0 ended: exit code 3"),
    Broken("sidecar", failing_sidecar, "InitContainerFailed", "container prepare of pod sidecar-worker-0 ended: exit code 3"),
    Broken(
        "launcher-init", failing_init_container_of_the_launcher, "InitContainerFailed", "container prepare of pod launcher-init-launcher"
    ),
    Broken("worker-ends", worker_that_ends, "WorkerEnded", "pod worker-ends-worker-0 ended: exit code 3"),
    Broken("worker-crashes", worker_that_crashes, "CrashLoopBackOff", "pod worker-crashes-worker-0 ended: exit code 3"),
    Broken("out-of-memory", worker_without_memory, "OOMKilled", "because it used more memory than its limit"),
    Broken("unready", unready_worker, "Unhealthy", "Readiness probe"),
    Broken("launcher-crashes", crashing_launcher, "CrashLoopBackOff", "exit code 3"),
    Broken("no-command", launcher_without_command, "StartError", 'exec: "no-such-command": executable file not found'),
    Broken("no-directory", working_directory_in_a_file, "StartError", "not a directory"),
]


def one_worker(name: str) -> Obj:
    """Return the example's job with one worker; nothing of it requests resources, and its launcher is tried often."""
    job = pi_job(name, workers=1)
    job["spec"]["runPolicy"]["backoffLimit"] = 20
    container(job["spec"]["mpiReplicaSpecs"]["Launcher"])["args"] = ["-n", "1", "/home/mpiuser/pi", "1000000"]
    for role in job["spec"]["mpiReplicaSpecs"].values():
        container(role).pop("resources", None)
    return job


def broken_job(broken: Broken) -> Obj:
    """Return such a job, broken."""
    job = one_worker(broken.id)
    broken.spoil(*(job["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker")))
    return job


@contextlib.contextmanager
def no_sandbox_class(cluster: Kubectl) -> Iterator[None]:
    """Let the RuntimeClass exist that no node can serve."""
    cluster.apply({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": NO_SANDBOX}, "handler": "no-such-handler"})
    yield
    cluster.run("delete", "runtimeclass", NO_SANDBOX)
