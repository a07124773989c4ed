"""What a user asks for: the fields of a job, each checked."""

import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotations import MOST_RESTARTS
from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.client.errors import InvalidError
from mpiop.client.pod_fields import empty_dirs, gpu_limits, toleration
from mpiop.client.quantities import check_cpu, check_size
from mpiop.client.type_checks import check_types

OUTPUT: Final = "mpiop.kubeflow.org/output"
"""An annotation with the value `tagged`: the launcher's log names the rank of each line."""
FILES_PATH: Final = "/upload"
READ_ONLY: Final = ":ro"
"""Ends a claim that is mounted read-only."""
SSH_AUTO: Final = "auto"
SSH_IMAGE: Final = "image"
SSH_INJECTED: Final = "injected"
SSH_OPERATOR: Final = ""
SSH_CHOICES: Final = (SSH_AUTO, SSH_IMAGE, SSH_INJECTED)
SSH_MODES: Final[Mapping[str, str]] = {SSH_AUTO: "", SSH_OPERATOR: "", SSH_IMAGE: c.SSH_IMAGE, SSH_INJECTED: c.SSH_INJECTED}
_COUNTS: Final = frozenset({"-n", "--n", "-np", "--np", "-c"})
"""Options of `mpirun` with a number of ranks, which `ranks` sets."""
_LEAST: Final = {"ranks": 1, "slots": 1, "retries": 0, "ttl": 0, "time_limit": 0, "user": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A program, and the ranks that run it.

    Attributes:
        command: The program and its arguments.
        image: Of launcher and workers.
        ranks: Number of MPI processes.
        slots: Processes on each worker; there are ⌈ranks / slots⌉ workers.
        mpi: One of `LIBRARIES`.
        ssh: Whose ssh and sshd are used: those of the `image`, mpiop-agent (`injected`), or what the operator offers (`auto`, of which
            `MPI.submit` makes a choice); "" leaves it to the operator's flag `--ssh`.
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
        check: Shell commands that the launcher runs before `mpirun`; "" for none. If they fail, the launcher ends with their exit code.
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
    ssh: str = SSH_AUTO
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
    check: str = ""
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
        check_types(self)
        if not self.command:
            raise InvalidError("there is no program to run: put it at the end, after --; in Python, into the command")
        if not self.image:
            raise InvalidError("there is no image: give one with --image; in Python, with image=")
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise InvalidError(f"{name} is {value}: it must be at least {least}")
        if self.mpi not in LIBRARIES:
            raise InvalidError(f"mpi is {self.mpi!r}: it must be one of {', '.join(LIBRARIES)}")
        if self.ssh not in SSH_MODES:
            raise InvalidError(f"ssh is {self.ssh!r}: it must be one of {', '.join(SSH_CHOICES)}")
        self._check_values()
        self._check_mounts()

    def _check_mounts(self) -> None:
        mounted = {mount_path(path): "an empty-dir" for path in self.empty_dirs}
        for path, claim in self.mounts.items():
            if not path.startswith("/"):
                raise InvalidError(f"mount {claim}:{path}: the path must be absolute")
            if other := mounted.get(mount_path(path)):
                raise InvalidError(f"mount {claim}:{path}: {other} is mounted at {mount_path(path)} already")
            mounted[mount_path(path)] = claim
            if not claim.removesuffix(READ_ONLY) or ":" in claim.removesuffix(READ_ONLY):
                raise InvalidError(f"mount {claim!r} at {path}: it must be a PersistentVolumeClaim, or CLAIM{READ_ONLY}")

    def _check_values(self) -> None:
        check_cpu("cpu", self.cpu)
        check_size("memory", self.memory)
        check_size("shm", self.shm)
        gpu_limits(self.gpus)
        empty_dirs(self.empty_dirs)
        for text in self.tolerations:
            toleration(text)
        if (word := next((word for word in self.mpirun_args if word.partition("=")[0] in _COUNTS), None)) is not None:
            raise InvalidError(f"mpirun_args {word}: give the number of ranks with ranks (-n)")
        if not 0 <= (self.max_restarts or 0) <= MOST_RESTARTS:
            raise InvalidError(f"max_restarts is {self.max_restarts}: it must be from 0 to {MOST_RESTARTS}")

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return math.ceil(self.ranks / self.slots)


def mount_path(path: str) -> str:
    """Return `path` as a container sees it: `/a` for `/a/`, `//a` and `/b/../a`. A relative path stays relative."""
    return posixpath.normpath(re.sub("^/+", "/", path)) if path else path
