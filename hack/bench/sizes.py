"""What the objects of a job weigh, and how many workers it may have before one is refused: computed with the operator's own builders."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from bench.objects import mpijob
from bench.scenarios import Scenario
from mpiop.api import constants as c
from mpiop.api.parse import parse_mpijob
from mpiop.api.status import status_to_wire
from mpiop.api.types import MPIJob, MPIJobStatus, ReplicaStatus, Summary
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import build_config_map
from mpiop.controller.objects.launcher_job import build_launcher_job, build_launcher_template
from mpiop.controller.objects.service import build_service
from mpiop.controller.objects.ssh_secret import KeyPair, build_ssh_secret
from mpiop.controller.objects.worker_pod import build_worker_pod
from mpiop.controller.status import conditions
from mpiop.controller.write.ssh_keys import KEY_TYPES, generate_key_pair

KIB, MIB = 2**10, 2**20
CEILING: Final = 2**17
"""Workers beyond which nobody asks: Kubernetes is tested with 150,000 Pods in a cluster."""
_UID: Final = "00000000-40d5-491e-99b0-da01ff1f3341"
_DNS_MESSAGE: Final = 2**16 - 1
_DNS_HEADER, _DNS_QUESTION, _DNS_ADDRESS = 12, 6, 16


@dataclass(frozen=True, slots=True)
class Naming:
    """How long the names are that stand in each line of a hostfile.

    Attributes:
        domain: Value of `--cluster-domain`; "" is the default.
    """

    title: str
    job: str
    namespace: str
    domain: str = ""

    @property
    def options(self) -> BuildOptions:
        """Return what builders have to know of it."""
        return BuildOptions(self.domain)


SHORT: Final = Naming("usual names", "job0000", "bench-ours")
NAMINGS: Final = (
    Naming("names of one letter", "a", "b"),
    SHORT,
    Naming("the same, `--cluster-domain=cluster.local`", SHORT.job, SHORT.namespace, "cluster.local"),
    Naming("the longest names, and that domain", "a" * 50, "b" * 63, "cluster.local"),
)
"""50 letters: with `-worker-` and five digits, 63, which is the most that a host name may have."""


def job_of(workers: int, naming: Naming = SHORT) -> MPIJob:
    """Return a job of so many workers, as the API server has stored it."""
    raw = mpijob(Scenario(naming.title, naming.title, 1, workers), naming.namespace, 0)
    raw["metadata"] = {**raw["metadata"], "name": naming.job, "uid": _UID, "generation": 1}
    return parse_mpijob(raw)


def all_running(job: MPIJob, options: BuildOptions) -> Mapping[str, Any]:
    """Return the ConfigMap when all workers run: each stands in the hostfile and in `discover_hosts.sh`."""
    return build_config_map(job, names.worker_names(job), options)


def status_at_end(job: MPIJob) -> dict[str, Any]:
    """Return a status with all that a job that Succeeded has."""
    now, kinds = datetime(2026, 1, 1, tzinfo=UTC), (c.CONDITION_CREATED, c.CONDITION_RUNNING, c.CONDITION_SUCCEEDED)
    made = tuple(conditions.make(kind, "True", f"MPIJob{kind}", f"MPIJob {job.key} successfully completed.", now) for kind in kinds)
    counts = {c.LAUNCHER: ReplicaStatus(succeeded=1), c.WORKER: ReplicaStatus(active=job.worker_replicas)}
    summary = Summary("Succeeded", f"{job.worker_replicas}/{job.worker_replicas}", "1h0m")
    return status_to_wire(MPIJobStatus(made, counts, now, now, summary=summary))


@functools.cache
def _key_pair() -> KeyPair:
    return generate_key_pair(KEY_TYPES[0])


OBJECTS: Final[Mapping[str, Callable[[MPIJob, BuildOptions], Mapping[str, Any]]]] = {
    "MPIJob, without its status": lambda job, _: job.raw,
    "its status at the end": lambda job, _: status_at_end(job),
    "ConfigMap, all workers running": all_running,
    "Secret": lambda job, _: build_ssh_secret(job, _key_pair()),
    "Service": lambda job, _: build_service(job),
    "launcher Job": lambda job, options: build_launcher_job(job, options, suspend=False),
    "launcher Pod": build_launcher_template,
    "Pod of a worker": lambda job, options: build_worker_pod(job, job.worker_replicas - 1, options),
}
"""Each object of a job as the operator writes it; of the workers, the last."""


@functools.cache
def bytes_of(name: str, workers: int) -> int:
    """Return how long that object of a job of so many workers is as JSON."""
    return len(msgspec.json.encode(OBJECTS[name](job_of(workers), SHORT.options)))


def all_bytes(workers: int) -> int:
    """Return how long all objects of one such job are: what the server is sent at least, and stores of each in one version at least."""
    return sum(bytes_of(name, workers) for name in OBJECTS) + (workers - 1) * bytes_of("Pod of a worker", workers)


def _data(config_map: Mapping[str, Any]) -> int:
    return sum(len(text) for text in config_map["data"].values())


def _hostfile_alone(job: MPIJob, options: BuildOptions) -> int:
    return _data(build_config_map(job, (), options))


def _annotations(job: MPIJob, options: BuildOptions) -> int:
    annotations = build_launcher_template(job, options)["metadata"]["annotations"]
    return sum(len(name) + len(value) for name, value in annotations.items())


def _environment(job: MPIJob, options: BuildOptions) -> int:
    container = build_launcher_template(job, options)["spec"]["containers"][0]
    return len(msgspec.json.encode([container.get("env"), container.get("command"), container.get("args")]))


def _addresses(job: MPIJob, options: BuildOptions) -> int:
    """Return how long an answer with the addresses of all Pods is: the name is in it once.  Source: RFC 1035, 4.1 and 4.1.4."""
    name = f"{names.service_name(job)}.{job.namespace}.svc.{options.cluster_domain or 'cluster.local'}."
    return _DNS_HEADER + _DNS_QUESTION + len(name) + job.worker_replicas * _DNS_ADDRESS


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that must not be longer than it may.

    Attributes:
        most: Bytes that it may have.
        size: Bytes that it has for a job.
        consequence: What happens beyond it; "" where nobody gets there.
        moved_by: The setting, or what else there is to do.
    """

    title: str
    most: int
    size: Callable[[MPIJob, BuildOptions], int]
    consequence: str = ""
    moved_by: str = ""


_SHORTER: Final = "no setting; shorter names of job and namespace, no `--cluster-domain`; several jobs"
LIMITS: Final[Sequence[Limit]] = (
    Limit(
        "data of the ConfigMap, all workers running: 1 MiB",
        MIB,
        lambda job, options: _data(all_running(job, options)),
        "`discover_hosts.sh` stays as it was, the job is Stalled, a lost worker is not made again; the hostfile is whole: `mpirun` starts",
        _SHORTER,
    ),
    Limit(
        "the same with the hostfile alone: 1 MiB", MIB, _hostfile_alone, "the ConfigMap cannot be made: the job does not start", _SHORTER
    ),
    Limit(
        "the ConfigMap as one request to etcd: 1.5 MiB",
        MIB * 3 // 2,
        lambda job, options: len(msgspec.json.encode(all_running(job, options))),
        "never seen: the API server refuses it before",
        "etcd's `--max-request-bytes`, which does not help",
    ),
    Limit("annotations of the launcher's Pod: 256 KiB", 256 * KIB, _annotations),
    Limit(
        "one argument of a program (environment, command line): 128 KiB", 128 * KIB, _environment, "", "nothing grows: hosts are in a file"
    ),
    Limit("Secret: 1 MiB", MIB, lambda job, _: len(msgspec.json.encode(build_ssh_secret(job, _key_pair())))),
    Limit(
        "answer of the DNS to the name of the Service: 64 KiB",
        _DNS_MESSAGE,
        _addresses,
        "that one name is answered in part; nobody asks for it: workers are looked up one by one",
        "none needed",
    ),
)


@functools.cache
def largest(limit: Limit, naming: Naming = SHORT) -> int | None:
    """Return how many workers a job can have within `limit`; None when `CEILING` of them are not too many."""

    def fits(workers: int) -> bool:
        return limit.size(job_of(workers, naming), naming.options) <= limit.most

    high = 1
    while fits(high):
        if high == CEILING:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
