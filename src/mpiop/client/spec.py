"""What a user asks for, and the MPIJob that it becomes."""

import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotations import MAX_RESTARTS, MOST_RESTARTS, SHM
from mpiop.api.mpi_implementations import LIBRARIES, Implementation
from mpiop.client.errors import InvalidError
from mpiop.client.patch import patched
from mpiop.client.pod_fields import empty_dirs, gpu_limits, toleration
from mpiop.client.quantities import check_cpu, check_size

OUTPUT: Final = "mpiop.kubeflow.org/output"
"""An annotation with the value `tagged`: the launcher's log names the rank of each line."""
FILES_PATH: Final = "/upload"
READ_ONLY: Final = ":ro"
"""Ends a claim that is mounted read-only."""
_COUNTS: Final = frozenset({"-n", "--n", "-np", "--np", "-c"})
"""Options of `mpirun` with a number of ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A program on a number of ranks.

    Attributes:
        command: The program and its arguments.
        image: Of launcher and workers.
        ranks: Number of MPI processes.
        slots: Processes on each worker; there are ⌈ranks / slots⌉ workers.
        mpi: One of `LIBRARIES`.
        gpus: GPUs of each worker: a number of NVIDIA's, or of another vendor's such as `amd.com/gpu=2`.
        cpu: CPU request of each worker, a quantity; "" for none.
        memory: Memory request and limit of each worker, a quantity; "" for none.
        shm: Size of /dev/shm in launcher and workers, a quantity; "" leaves the runtime's 64 MiB.
        env: Environment variables of launcher and ranks.
        mounts: PersistentVolumeClaims by the path where they are mounted, in launcher and workers; `CLAIM:ro` is mounted read-only.
        workdir: Working directory of the ranks.
        queue: Queue of Kueue.
        priority: PriorityClass of the Pods.
        retries: How often a launcher that failed is started again, whatever the cause (`backoffLimit`).
        max_restarts: How often the job is restarted after it lost a Pod or a node; these do not count as retries. None for never.
        ttl: Seconds after the end until the job's Pods and other objects are deleted; None keeps them.
        time_limit: Seconds that the job may run; None for no limit.
        user: User ID that the containers run as; None for that of the image.
        home: Home of that user, where ssh and sshd look for the keys.
        files: ConfigMap whose keys are files for each host, in `FILES_PATH`; and their names by key.
        is_tagged: Whether each line of output carries its rank.
        has_stdin: Whether the launcher has a standard input, which ends when the first who attaches to it leaves.
        mpirun_args: Options of `mpirun`, such as `["--map-by", "node"]`, before the program.
        labels: Labels of the job and its Pods.
        node_selector: Labels of the nodes on which the Pods may run.
        tolerations: Taints that the Pods tolerate, as `KEY[=VALUE][:EFFECT]`.
        image_pull_secrets: Secrets with which the image is pulled.
        service_account: ServiceAccount of the Pods.
        host_network: Whether the Pods use the network of their nodes.
        empty_dirs: Sizes of empty volumes by the path where they are mounted, in launcher and workers; "" is without a limit.
        patch: Fields of the MPIJob that win over all others (`mpiop.client.patch`).
    """

    command: Sequence[str]
    image: str
    ranks: int = 1
    slots: int = 1
    mpi: str = "openmpi"
    gpus: int | str = 0
    cpu: str = ""
    memory: str = ""
    shm: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])
    workdir: str = ""
    queue: str = ""
    priority: str = ""
    retries: int = 0
    max_restarts: int | None = None
    ttl: int | None = None
    time_limit: int | None = None
    user: int | None = None
    home: str = "/root"
    files: tuple[str, Mapping[str, str]] | None = None
    is_tagged: bool = True
    has_stdin: bool = False
    mpirun_args: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: Sequence[str] = ()
    image_pull_secrets: Sequence[str] = ()
    service_account: str = ""
    host_network: bool = False
    empty_dirs: Mapping[str, str] = field(default_factory=dict[str, str])
    patch: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """Refuse what can never run.

        Raises:
            InvalidError: With the field and what it may be.
        """
        if not self.command:
            raise InvalidError("there is no program to run: put it at the end, after --")
        if not self.image:
            raise InvalidError("there is no image: give one with --image")
        for name in ("ranks", "slots"):
            if getattr(self, name) < 1:
                raise InvalidError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.mpi not in LIBRARIES:
            raise InvalidError(f"mpi is {self.mpi!r}: it must be one of {', '.join(LIBRARIES)}")
        self._check_limits()
        mounted = {mount_path(path): "an empty-dir" for path in self.empty_dirs}
        for path, claim in self.mounts.items():
            if not path.startswith("/"):
                raise InvalidError(f"mount {claim}:{path}: the path must be absolute")
            if other := mounted.get(mount_path(path)):
                raise InvalidError(f"mount {claim}:{path}: {other} is mounted at {mount_path(path)} already")
            mounted[mount_path(path)] = claim
            if not claim.removesuffix(READ_ONLY) or ":" in claim.removesuffix(READ_ONLY):
                raise InvalidError(f"mount {claim!r} at {path}: it must be a PersistentVolumeClaim, or CLAIM{READ_ONLY}")

    def _check_limits(self) -> None:
        check_cpu("cpu", self.cpu)
        check_size("memory", self.memory)
        check_size("shm", self.shm)
        if (word := next((word for word in self.mpirun_args if word.partition("=")[0] in _COUNTS), None)) is not None:
            raise InvalidError(f"mpirun_args {word}: give the number of ranks with ranks (-n)")
        if not 0 <= (self.max_restarts or 0) <= MOST_RESTARTS:
            raise InvalidError(f"max_restarts is {self.max_restarts}: it must be from 0 to {MOST_RESTARTS}")

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return math.ceil(self.ranks / self.slots)


def mount_path(path: str) -> str:
    """Return `path` as a container sees it: `/a` for `/a/`, `//a` and `/b/../a`; what is relative stays so."""
    return posixpath.normpath(re.sub("^/+", "/", path)) if path else path


def manifest(spec: JobSpec, name: str) -> dict[str, Any]:
    """Return the MPIJob; without a `name` the API server makes one from the program's."""
    library = LIBRARIES[spec.mpi]
    policy: dict[str, Any] = {"cleanPodPolicy": c.CLEAN_RUNNING, "backoffLimit": spec.retries}
    policy |= {} if spec.ttl is None else {"ttlSecondsAfterFinished": spec.ttl}
    policy |= {} if spec.time_limit is None else {"activeDeadlineSeconds": spec.time_limit}
    job = {
        "apiVersion": c.API_VERSION,
        "kind": c.KIND,
        "metadata": _metadata(spec, name),
        "spec": {
            "slotsPerWorker": spec.slots,
            "mpiImplementation": library.name,
            "sshAuthMountPath": f"{spec.home.rstrip('/')}/.ssh",
            "runPolicy": policy,
            "mpiReplicaSpecs": {c.LAUNCHER: _launcher(spec, library), c.WORKER: _worker(spec)},
        },
    }
    return patched(job, spec.patch)


def mpirun(spec: JobSpec) -> list[str]:
    """Return the launcher's command line."""
    library = LIBRARIES[spec.mpi]
    options = [*library.tag_options] if spec.is_tagged else []
    if workdir := _workdir(spec):
        options += ["-wdir", workdir]
    if library.export_option:
        options += [word for name in spec.env for word in (library.export_option, name)]
    return ["mpirun", "-n", str(spec.ranks), *options, *spec.mpirun_args, *spec.command]


def ranks_of(job: Mapping[str, Any], library: Implementation) -> int | None:
    """Return how many ranks the launcher of an MPIJob starts, if its command line begins with that number, as ours does; else None."""
    container = job["spec"]["mpiReplicaSpecs"][c.LAUNCHER]["template"]["spec"]["containers"][0]
    match [*(container.get("command") or ()), *(container.get("args") or ())]:
        case [program, "-n" | "-np", number, *others] if posixpath.basename(program) in library.commands and ":" not in others:
            return int(number) if number.isdecimal() else None
        case _:
            return None


def generated_name(command: Sequence[str]) -> str:
    """Return what a job without a name is called after: its program. A name begins with a letter."""
    program = re.sub(r"[^a-z0-9]+", "-", command[0].rpartition("/")[2].lower())
    return (program if program[:1].isalpha() else f"job-{program.strip('-')}")[:30].strip("-")


def _metadata(spec: JobSpec, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} if name else {"generateName": f"{generated_name(spec.command)}-"}
    restarts = "" if spec.max_restarts is None else str(spec.max_restarts)
    if annotations := _filled({OUTPUT: "tagged" if spec.is_tagged else "", SHM.name: spec.shm, MAX_RESTARTS.name: restarts}):
        metadata["annotations"] = annotations
    if labels := {**spec.labels, **_filled({c.LABEL_QUEUE: spec.queue})}:
        metadata["labels"] = labels
    return metadata


def _launcher(spec: JobSpec, library: Implementation) -> dict[str, Any]:
    program, *words = mpirun(spec)
    container: dict[str, Any] = {"name": c.ROLE_LAUNCHER, "image": spec.image, "command": [program], "args": escaped(words)}
    container["env"] = _environment({**library.root_environment, **spec.env})
    container |= {"stdin": True, "stdinOnce": True} if spec.has_stdin else {}
    return {"restartPolicy": c.NEVER, "template": _template(spec, container)}


def _worker(spec: JobSpec) -> dict[str, Any]:
    container: dict[str, Any] = {"name": c.ROLE_WORKER, "image": spec.image}
    if spec.user is not None:
        container |= {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", f"{spec.home.rstrip('/')}/.sshd_config"]}
    if spec.env:
        container["env"] = _environment(spec.env)
    requests = {"cpu": spec.cpu, "memory": spec.memory}
    limits = {"memory": spec.memory, **gpu_limits(spec.gpus)}
    resources = {"requests": _filled(requests), "limits": _filled(limits)}
    if any(resources.values()):
        container["resources"] = {kind: values for kind, values in resources.items() if values}
    return {"replicas": spec.workers, "template": _template(spec, container)}


def _template(spec: JobSpec, container: dict[str, Any]) -> dict[str, Any]:
    return {**({"metadata": {"labels": dict(spec.labels)}} if spec.labels else {}), "spec": _pod(spec, container)}


def _pod(spec: JobSpec, container: dict[str, Any]) -> dict[str, Any]:
    volumes, mounts = empty_dirs(spec.empty_dirs)
    if spec.files is not None:
        name, names = spec.files
        items = [{"key": key, "path": path} for key, path in names.items()]
        volumes.append({"name": "files", "configMap": {"name": name, "items": items, "defaultMode": 0o755}})
        mounts.append({"name": "files", "mountPath": FILES_PATH})
    claims = list(dict.fromkeys(claim.removesuffix(READ_ONLY) for claim in spec.mounts.values()))
    volumes += [{"name": f"mount-{number}", "persistentVolumeClaim": {"claimName": claim}} for number, claim in enumerate(claims)]
    for path, claim in spec.mounts.items():
        mount = {"name": f"mount-{claims.index(claim.removesuffix(READ_ONLY))}", "mountPath": path}
        mounts.append(mount | ({"readOnly": True} if claim.endswith(READ_ONLY) else {}))
    pod: dict[str, Any] = {"containers": [container | ({"volumeMounts": mounts} if mounts else {})]}
    pod |= {"volumes": volumes} if volumes else {}
    pod |= {"priorityClassName": spec.priority} if spec.priority else {}
    pod |= {"securityContext": {"runAsUser": spec.user}} if spec.user is not None else {}
    return pod | _placement(spec)


def _placement(spec: JobSpec) -> dict[str, Any]:
    """Return the fields of a Pod that decide where it runs, and as whom."""
    fields = {
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [toleration(text) for text in spec.tolerations],
        "imagePullSecrets": [{"name": name} for name in spec.image_pull_secrets],
        "serviceAccountName": spec.service_account,
        "hostNetwork": spec.host_network,
    }
    return {name: value for name, value in fields.items() if value}


def escaped(words: Sequence[str]) -> list[str]:
    """Return `words` so that the ranks get them as they are: Kubernetes makes `$` of `$$`, and a value of `$(NAME)`."""
    return [word.replace("$", "$$") for word in words]


def _environment(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in zip(values, escaped([*values.values()]), strict=True)]


def _workdir(spec: JobSpec) -> str:
    return spec.workdir or (FILES_PATH if spec.files is not None else "")


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
