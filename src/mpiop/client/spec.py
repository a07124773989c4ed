"""What a user asks for, and the MPIJob that it becomes."""

import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotations import SHM
from mpiop.api.mpi_implementations import LIBRARIES, Implementation
from mpiop.api.slots import GPUS
from mpiop.client.errors import InvalidError

OUTPUT: Final = "mpiop.kubeflow.org/output"
"""An annotation with the value `tagged`: the launcher's log names the rank of each line."""
FILES_PATH: Final = "/upload"
READ_ONLY: Final = ":ro"
"""Ends a claim that is mounted read-only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A program on a number of ranks.

    Attributes:
        command: The program and its arguments.
        image: Of launcher and workers.
        ranks: Number of MPI processes.
        slots: Processes on each worker; there are ⌈ranks / slots⌉ workers.
        mpi: One of `LIBRARIES`.
        gpus: GPUs of each worker.
        cpu: CPU request of each worker, a quantity; "" for none.
        memory: Memory request and limit of each worker, a quantity; "" for none.
        shm: Size of /dev/shm in launcher and workers, a quantity; "" leaves the runtime's 64 MiB.
        env: Environment variables of launcher and ranks.
        mounts: PersistentVolumeClaims by the path where they are mounted, in launcher and workers; `CLAIM:ro` is mounted read-only.
        workdir: Working directory of the ranks.
        queue: Queue of Kueue.
        priority: PriorityClass of the Pods.
        max_restarts: How often a failed launcher is started again.
        ttl: Seconds after the end until the job's Pods and other objects are deleted; None keeps them.
        time_limit: Seconds that the job may run; None for no limit.
        user: User ID that the containers run as; None for that of the image.
        home: Home of that user, where ssh and sshd look for the keys.
        files: ConfigMap whose keys are files for each host, in `FILES_PATH`; and their names by key.
        is_tagged: Whether each line of output carries its rank.
        has_stdin: Whether the launcher has a standard input, which ends when the first who attaches to it leaves.
    """

    command: Sequence[str]
    image: str
    ranks: int = 1
    slots: int = 1
    mpi: str = "openmpi"
    gpus: int = 0
    cpu: str = ""
    memory: str = ""
    shm: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])
    workdir: str = ""
    queue: str = ""
    priority: str = ""
    max_restarts: int = 0
    ttl: int | None = None
    time_limit: int | None = None
    user: int | None = None
    home: str = "/root"
    files: tuple[str, Mapping[str, str]] | None = None
    is_tagged: bool = True
    has_stdin: bool = False

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
        mounted: dict[str, str] = {}
        for path, claim in self.mounts.items():
            if not path.startswith("/"):
                raise InvalidError(f"mount {claim}:{path}: the path must be absolute")
            if other := mounted.get(mount_path(path)):
                raise InvalidError(f"mount {claim}:{path}: {other} is mounted at {mount_path(path)} already")
            mounted[mount_path(path)] = claim
            if not claim.removesuffix(READ_ONLY) or ":" in claim.removesuffix(READ_ONLY):
                raise InvalidError(f"mount {claim!r} at {path}: it must be a PersistentVolumeClaim, or CLAIM{READ_ONLY}")

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
    policy: dict[str, Any] = {"cleanPodPolicy": c.CLEAN_RUNNING, "backoffLimit": spec.max_restarts}
    policy |= {} if spec.ttl is None else {"ttlSecondsAfterFinished": spec.ttl}
    policy |= {} if spec.time_limit is None else {"activeDeadlineSeconds": spec.time_limit}
    return {
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


def mpirun(spec: JobSpec) -> list[str]:
    """Return the launcher's command line."""
    library = LIBRARIES[spec.mpi]
    options = [*library.tag_options] if spec.is_tagged else []
    if workdir := _workdir(spec):
        options += ["-wdir", workdir]
    if library.export_option:
        options += [word for name in spec.env for word in (library.export_option, name)]
    return ["mpirun", "-n", str(spec.ranks), *options, *spec.command]


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
    if annotations := _filled({OUTPUT: "tagged" if spec.is_tagged else "", SHM.name: spec.shm}):
        metadata["annotations"] = annotations
    if spec.queue:
        metadata["labels"] = {c.LABEL_QUEUE: spec.queue}
    return metadata


def _launcher(spec: JobSpec, library: Implementation) -> dict[str, Any]:
    program, *words = mpirun(spec)
    container: dict[str, Any] = {"name": c.ROLE_LAUNCHER, "image": spec.image, "command": [program], "args": escaped(words)}
    container["env"] = _environment({**library.root_environment, **spec.env})
    container |= {"stdin": True, "stdinOnce": True} if spec.has_stdin else {}
    return {"restartPolicy": c.NEVER, "template": {"spec": _pod(spec, container)}}


def _worker(spec: JobSpec) -> dict[str, Any]:
    container: dict[str, Any] = {"name": c.ROLE_WORKER, "image": spec.image}
    if spec.user is not None:
        container |= {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", f"{spec.home.rstrip('/')}/.sshd_config"]}
    if spec.env:
        container["env"] = _environment(spec.env)
    requests = {"cpu": spec.cpu, "memory": spec.memory}
    limits = {"memory": spec.memory, GPUS[0]: str(spec.gpus or "")}
    resources = {"requests": _filled(requests), "limits": _filled(limits)}
    if any(resources.values()):
        container["resources"] = {kind: values for kind, values in resources.items() if values}
    return {"replicas": spec.workers, "template": {"spec": _pod(spec, container)}}


def _pod(spec: JobSpec, container: dict[str, Any]) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
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
    return pod


def escaped(words: Sequence[str]) -> list[str]:
    """Return `words` so that the ranks get them as they are: Kubernetes makes `$` of `$$`, and a value of `$(NAME)`."""
    return [word.replace("$", "$$") for word in words]


def _environment(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in zip(values, escaped([*values.values()]), strict=True)]


def _workdir(spec: JobSpec) -> str:
    return spec.workdir or (FILES_PATH if spec.files is not None else "")


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
