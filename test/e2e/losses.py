"""Jobs with ranks on two nodes, what is done to their processes, and how long `mpirun` takes to end after that."""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.jobs import LAUNCHER, RUNS, launcher_container, phase
from e2e.kubectl import Kubectl, NotSeenError, Obj
from e2e.libraries import LIBRARIES, plain_job, sshd_job
from embedded.cgroups import read_hierarchies
from mpiop.kube.resources import PODS

RANKS: Final = 2
IN_BAND_SECONDS: Final = 90
"""What no job with mpiop-agent may take longer for, and how long the others are watched."""
START_SECONDS: Final = 180
LOOK_SECONDS: Final = 0.2
RANK: Final = "echo running; sleep 86400.{number}; exit 0"
"""Ending the `sleep` lets the rank succeed."""


@dataclass(frozen=True)
class Kind:
    """What `mpirun` is, and who its ssh is."""

    mode: str
    library: str

    @property
    def name(self) -> str:
        return f"{self.mode}-{self.library}".lower()


IS_KUBEFLOW: Final = os.environ.get("MPIOP_E2E_OPERATOR") == "kubeflow"
"""Kubeflow's operator is measured, for comparison, and not ours."""
_OURS: Final = (*(Kind("Injected", library) for library in LIBRARIES), Kind("Image", "openmpi5"), Kind("Image", "intel"))
_THEIRS: Final = tuple(Kind("Kubeflow", library) for library in LIBRARIES)
_BY_NAME: Final = {kind.name: kind for kind in (_THEIRS if IS_KUBEFLOW else _OURS)}
KINDS: Final = tuple(_BY_NAME[name] for name in (os.environ.get("MPIOP_E2E_KINDS") or ",".join(_BY_NAME)).split(","))
"""All, or those of MPIOP_E2E_KINDS, such as "injected-openmpi5,injected-intel"; an unknown name is an error, not an empty table."""
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Run:
    """One job; `number` marks its ranks among all processes of this machine."""

    fault: str
    kind: Kind
    number: int

    @property
    def name(self) -> str:
        return f"{self.fault}-{self.kind.name}-{self.number}"

    @property
    def is_bound(self) -> bool:
        """Whether it must end, or continue, in band."""
        return self.kind.mode == "Injected"

    def job(self, *, launcher: str, workers: str = "") -> Obj:
        """Return its MPIJob, with the launcher on that node, and the workers on another or, without one, one on each."""
        job_of = plain_job if self.is_bound else sshd_job
        job = job_of(self.kind.library, self.name, workers=RANKS)
        job["spec"]["runPolicy"] = {"cleanPodPolicy": "None", "backoffLimit": 0}
        if IS_KUBEFLOW:  # its first attempt would fail, while no worker is Ready
            job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
        roles = job["spec"]["mpiReplicaSpecs"]
        for role in roles.values():
            [container] = role["template"]["spec"]["containers"]
            container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
        roles["Launcher"]["restartPolicy"] = "Never"
        roles["Launcher"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": launcher}
        roles["Worker"]["template"]["spec"] |= {"nodeSelector": {"kubernetes.io/hostname": workers}} if workers else one_a_node(self.name)
        launcher_container(job)["args"] = ["-n", str(RANKS), "/bin/sh", "-c", RANK.format(number=self.number)]
        return job

    def labels(self) -> str:
        """Select its launcher."""
        return f"{LAUNCHER},training.kubeflow.org/job-name={self.name}"

    def worker_on(self, here: Kubectl, node: str) -> str:
        """Return the name of its worker on that node."""
        pods = here.read_all(PODS, self.labels().replace("role=launcher", "role=worker"))
        [name] = [pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == node]
        return str(name)

    @property
    def waits_in(self) -> str:
        """The command line of what its ranks wait for, as the kernel shows it."""
        return f"sleep\0{86400}.{self.number}\0"

    def ranks(self) -> list[int]:
        """Return the ids of what its ranks wait for."""
        return [pid for pid, command in commands() if command == self.waits_in]

    def daemon_below(self, first: int) -> int:
        """Return the id of the daemon of `mpirun`, which started the shell of a rank, in the container of that first process."""
        [rank] = [pid for pid in self.ranks() if namespace(pid) == namespace(first)]
        return parent(parent(rank))


def one_a_node(job: str) -> Obj:
    """Return the fields of a Pod's spec by which the workers of a job each have a node."""
    selector = {"matchLabels": {"training.kubeflow.org/job-name": job, "training.kubeflow.org/job-role": "worker"}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    ]}}}  # fmt: skip


def runs(fault: str) -> list[Run]:
    """Return the jobs of each kind for a fault."""
    return [Run(fault, kind, next(_numbers)) for kind in KINDS for _ in range(RUNS)]


def commands() -> Iterator[tuple[int, str]]:
    """Yield the processes of this machine, each with the words of its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield int(file.parent.name), file.read_text(encoding="utf-8", errors="replace")


def namespace(pid: int) -> Path:
    """Return the namespace of processes that a process is in, which is that of its container."""
    return Path(f"/proc/{pid}/ns/pid").readlink()


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))


def first_process(pod: str) -> int:
    """Return the id of the first process of the one container of a Pod."""
    found = list[int]()
    for pid, command in commands():
        with contextlib.suppress(OSError):
            folder = Path(f"/proc/{pid}")
            inside = next(line.split()[-1] for line in (folder / "status").read_text().splitlines() if line.startswith("NSpid:"))
            if inside == "1" and not command.startswith("/pause") and (folder / "root/etc/hostname").read_text().strip() == pod:
                found.append(pid)
    [pid] = found
    return pid


def freeze(pid: int, *, frozen: bool) -> None:
    """Freeze or thaw the container that the process is in, with the kernel's freezer."""
    for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "freezer":
            Path(f"/sys/fs/cgroup/freezer{path}/freezer.state").write_text("FROZEN" if frozen else "THAWED", encoding="ascii")
        elif not controllers and read_hierarchies().unified:
            Path(f"/sys/fs/cgroup{path}/cgroup.freeze").write_text("1" if frozen else "0", encoding="ascii")


def start(here: Kubectl, jobs: Mapping[Run, Obj]) -> None:
    """Apply the jobs, and return when all ranks run."""
    here.apply(*jobs.values())
    here.until(
        PODS,
        lambda pods: [phase(pod) for pod in pods] == ["Running"] * len(jobs),
        labels=LAUNCHER,
        timeout_seconds=START_SECONDS,
    )
    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(lambda run: until_running(here, run), jobs))


def until_running(here: Kubectl, run: Run) -> None:
    """Return when all ranks of the job have reported that they run."""
    [launcher] = here.read_all(PODS, run.labels())
    with here.following(launcher["metadata"]["name"], timeout_seconds=START_SECONDS) as lines:
        said = list(itertools.islice((line for line in lines if "running" in line), RANKS))
    assert len(said) == RANKS, f"{run.name}: {here.attempt('logs', launcher['metadata']['name']).stdout}"


@dataclass(frozen=True)
class End:
    """How `mpirun` ended, and how long after the fault."""

    seconds: float
    exit_code: int


def ends_of(here: Kubectl, awaited: Sequence[Run]) -> dict[Run, End]:
    """Return how the launchers end within the bound, seconds after now; those that do not are missing."""
    begun = time.monotonic()
    ends = dict[Run, End]()
    by_name = {run.name: run for run in awaited}

    def all_ended(pods: list[Obj]) -> bool:
        for pod in pods:
            run = by_name.get(pod["metadata"]["labels"]["training.kubeflow.org/job-name"])
            if run and run not in ends and phase(pod) in {"Succeeded", "Failed"}:
                [container] = pod["status"]["containerStatuses"]
                ends[run] = End(time.monotonic() - begun, container["state"]["terminated"]["exitCode"])
        return len(ends) == len(awaited)

    with contextlib.suppress(NotSeenError):
        here.until(PODS, all_ended, labels=LAUNCHER, timeout_seconds=IN_BAND_SECONDS)
    return ends


def ranks_ended(awaited: Sequence[Run], begun: float) -> dict[Run, float]:
    """Return when no rank of each job was left, in seconds after `begun`; jobs that keep some beyond the bound are missing."""
    ended = dict[Run, float]()
    while len(ended) < len(awaited) and time.monotonic() < begun + IN_BAND_SECONDS:
        there = {command for _, command in commands()}
        ended |= {run: time.monotonic() - begun for run in awaited if run not in ended and run.waits_in not in there}
        time.sleep(LOOK_SECONDS)
    return ended
