"""The table of hangs (docs/fault-tolerance.md): a node, a container or a server is lost, and `mpirun` ends or goes on in time.

Each job has a rank on either node. Jobs of all libraries run side by side under one fault. With mpiop-agent (`Injected`) every bound
must hold; what the ssh of images (`Image`) does is measured for comparison. The table goes to build/e2e/hangs.md.
"""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from demonstration.cluster import Cluster
from demonstration.operator_images import apply_operator, built_archives
from e2e.clusters import ROOT, embedded_cluster, output_shown, project
from e2e.conftest import NAME, namespace_of_test
from e2e.jobs import LAUNCHER, is_true, launcher_container, phase, pi_job
from e2e.kubectl import Kubectl, NotSeenError, Obj
from e2e.operator_pods import Operator
from e2e.test_mpi import IMPLEMENTATIONS, has_ended
from e2e.test_plain import LIBRARIES, plain_job
from embedded.cgroups import read_hierarchies
from mpiop.kube.resources import MPIJOBS, PODS, Resource

CLUSTER: Final = f"{NAME}-hangs"
FIRST, SECOND = f"mpiop-{CLUSTER}", f"mpiop-{CLUSTER}-2"
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
RANKS: Final = 2
IN_BAND_SECONDS: Final = 90
"""What no job with mpiop-agent may take longer for, and how long the others are watched."""
START_SECONDS: Final = 180
LOOK_SECONDS: Final = 0.2
HASTY: Final = "openmpi5"
"""Its `mpirun` ends with 0 within milliseconds when a daemon is killed: mpiop-agent may come too late (docs/plain-images.md, limits)."""
TABLE: Final = ROOT / "build" / "e2e" / "hangs.md"
IMAGES: Final = ("agent", *(f"plain-{library}" for library in LIBRARIES), "pi-openmpi5", "pi-intel")
RANK: Final = "echo running; sleep 86400.{number}; exit 0"
"""Whoever ends the `sleep` lets the rank end well."""


@dataclass(frozen=True)
class Kind:
    """What `mpirun` is, and who its ssh is."""

    mode: str
    library: str

    @property
    def name(self) -> str:
        """Part of a job's name."""
        return f"{self.mode}-{self.library}".lower()


KINDS: Final = (*(Kind("Injected", library) for library in LIBRARIES), Kind("Image", "openmpi5"), Kind("Image", "intel"))
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Run:
    """One job; `number` marks its ranks among all processes of this machine."""

    fault: str
    kind: Kind
    number: int

    @property
    def name(self) -> str:
        """Name of the MPIJob."""
        return f"{self.fault}-{self.kind.name}"

    @property
    def is_bound(self) -> bool:
        """Whether it must end, or go on, in band."""
        return self.kind.mode == "Injected"

    def job(self, *, launcher: str = FIRST, workers: str = "") -> Obj:
        """Return its MPIJob, with the launcher on that node, and the workers on another or, without one, one on each."""
        library = self.kind.library
        job = plain_job(library, self.name, workers=RANKS) if self.is_bound else pi_job(self.name)
        job["spec"]["mpiImplementation"] = IMPLEMENTATIONS[library]
        job["spec"]["runPolicy"] = {"cleanPodPolicy": "None", "backoffLimit": 0}
        roles = job["spec"]["mpiReplicaSpecs"]
        for role in roles.values():
            [container] = role["template"]["spec"]["containers"]
            container["image"] = f"mpioperator/mpi-pi:{'plain-' if self.is_bound else ''}{library}"
            container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
        roles["Launcher"]["restartPolicy"] = "Never"
        roles["Launcher"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": launcher}
        roles["Worker"]["template"]["spec"] |= {"nodeSelector": {"kubernetes.io/hostname": workers}} if workers else self._one_a_node()
        launcher_container(job)["args"] = ["-n", str(RANKS), "/bin/sh", "-c", RANK.format(number=self.number)]
        return job

    def _one_a_node(self) -> Obj:
        selector = {"matchLabels": {"training.kubeflow.org/job-name": self.name, "training.kubeflow.org/job-role": "worker"}}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        ]}}}  # fmt: skip

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


def runs(fault: str) -> list[Run]:
    """Return a job of each kind for a fault."""
    return [Run(fault, kind, next(_numbers)) for kind in KINDS]


def commands() -> Iterator[tuple[int, str]]:
    """Yield the processes of this machine, each with the words of its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield int(file.parent.name), file.read_text(encoding="utf-8", errors="replace")


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


@pytest.fixture(scope="module")
def two_nodes(is_current_cluster: bool, request: pytest.FixtureRequest) -> Iterator[Kubectl]:  # noqa: FBT001 - a fixture
    """A kubectl on a cluster of two nodes, with the operator on the first, where nothing happens to it."""
    if is_current_cluster:
        pytest.skip("the nodes of the user's own cluster are out of reach")
    TABLE.unlink(missing_ok=True)
    with output_shown(request), embedded_cluster(CLUSTER, "--nodes", "2") as cluster:
        project("hack/cluster", "load-image", "--name", CLUSTER, *built_archives("operator", *IMAGES))
        cluster.run("cordon", SECOND)
        apply_operator(Cluster(is_current=False, environment=cluster.environment))
        operator = Operator(cluster.within("mpi-operator"))
        # An init container in each Pod would ask for more CPU than this machine has.
        flag = {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--agent-delivery=Mount"}
        operator.kubectl.run("patch", "deployment", "mpi-operator", "--type=json", f"--patch={json.dumps([flag])}")
        operator.wait_until_ready()
        cluster.run("uncordon", SECOND)
        yield cluster


@pytest.fixture
def here(two_nodes: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own, where both nodes are well before and after."""
    with namespace_of_test(two_nodes, request) as made:
        try:
            yield made
        finally:
            project("hack/cluster", "up", "--name", CLUSTER, "--nodes", "2")


@contextlib.contextmanager
def cut_off() -> Iterator[None]:
    """Cut the second node off meanwhile: nothing reaches it, and nobody is told."""
    link = ("hack/cluster", "exec", "--name", CLUSTER, "--network-only", "--", "ip", "link", "set", "node-2")
    project(*link, "down")
    try:
        yield
    finally:
        project(*link, "up")


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
    """Return when all ranks of the job have said that they run."""
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


def tell(fault: str, seconds: Mapping[Kind, str]) -> None:
    """Add a row to the table."""
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    cells = " | ".join(seconds[kind] for kind in KINDS)
    if not TABLE.exists():
        head = " | ".join(f"{kind.library}, {kind.mode}" for kind in KINDS)
        TABLE.write_text(f"| fault | {head} |\n|---{'|---' * len(KINDS)}|\n", encoding="utf-8")
    with TABLE.open("a", encoding="utf-8") as table:
        table.write(f"| {fault} | {cells} |\n")


def judge(here: Kubectl, fault: str, awaited: Sequence[Run], ends: Mapping[Run, End], *, forgiven: str = "") -> None:
    """Write the row, and fail unless every `mpirun` that must has ended, and none with 0 but that of the library `forgiven`."""
    tell(fault, {run.kind: f"{ends[run].seconds:.0f} s, {ends[run].exit_code}" if run in ends else "hangs" for run in awaited})
    bound = [run for run in awaited if run.is_bound]
    wrong = [run for run in bound if run not in ends or (ends[run].exit_code == 0 and run.kind.library != forgiven)]
    logs = {run.name: here.attempt("logs", f"--selector={run.labels()}", "--tail=20").stdout for run in wrong}
    assert not wrong, f"{fault}: {[(run.name, ends.get(run)) for run in wrong]}\n{logs}"


def test_faults_of_one_worker(here: Kubectl) -> None:
    """A container is frozen, a server is killed, a Pod is deleted by force; other jobs go on though their node's kubelet is stopped."""
    frozen, killed, deleted, orphaned = (runs(fault) for fault in ("frozen", "killed", "deleted", "orphaned"))
    start(here, {run: run.job() for run in (*frozen, *killed, *deleted, *orphaned)})
    victims = {run: first_process(run.worker_on(here, SECOND)) for run in (*frozen, *killed)}
    project("hack/cluster", "stop", "--name", CLUSTER, "kubelet-2")
    pods = [run.worker_on(here, FIRST) for run in deleted]
    try:
        for run in frozen:
            freeze(victims[run], frozen=True)
        for run in killed:
            os.kill(victims[run], signal.SIGKILL)
        here.run("delete", "pods", "--force", "--grace-period=0", "--wait=false", *pods)
        ends = ends_of(here, (*frozen, *killed, *deleted))
    finally:
        for run in frozen:
            freeze(victims[run], frozen=False)
    here.until_one(NODES, SECOND, lambda node: not is_true(node, "Ready"))
    judge_all(
        lambda: judge(here, "worker's container frozen", frozen, ends),
        lambda: judge(here, "sshd killed", killed, ends, forgiven=HASTY),
        lambda: judge(here, "worker's Pod deleted by force", deleted, ends),
        lambda: goes_on(here, "worker's kubelet stopped", orphaned),
    )


def judge_all(*judgements: Callable[[], None]) -> None:
    """Make all judgements, and fail with all that failed."""
    failed = list[AssertionError]()
    for judgement in judgements:
        try:
            judgement()
        except AssertionError as error:
            failed.append(error)
    assert not failed, "\n\n".join(map(str, failed))


def goes_on(here: Kubectl, fault: str, awaited: Iterable[Run]) -> None:
    """Let the ranks end, and fail unless each job succeeds."""
    for run in awaited:
        for pid in run.ranks():
            os.kill(pid, signal.SIGTERM)
    ended = {run: ends_of(here, [run]) for run in awaited}
    tell(fault, {run.kind: "goes on" if found and found[run].exit_code == 0 else str(found) for run, found in ended.items()})
    wrong = {run.name: found for run, found in ended.items() if not found or found[run].exit_code}
    assert not wrong, wrong


def test_a_node_whose_network_is_cut(here: Kubectl) -> None:
    """It has a worker of some jobs, and the launcher of others: the ranks of those must end, for nobody is left to end them."""
    worker_lost, launcher_lost = runs("cut"), runs("headless")
    jobs = {run: run.job() for run in worker_lost} | {run: run.job(launcher=SECOND, workers=FIRST) for run in launcher_lost}
    start(here, jobs)
    begun = time.monotonic()
    with cut_off(), ThreadPoolExecutor(1) as pool:
        ranks = pool.submit(ranks_ended, launcher_lost, begun)
        ends = ends_of(here, worker_lost)
    left = {run.kind: f"{ranks.result()[run]:.0f} s" if run in ranks.result() else "ranks stay" for run in launcher_lost}
    tell("launcher's node: network cut, until its ranks have ended", left)
    late = [run.name for run in launcher_lost if run.is_bound and run not in ranks.result()]
    judge(here, "worker's node: network cut", worker_lost, ends)
    assert not late


def test_a_node_that_is_switched_off_while_no_operator_runs(here: Kubectl, two_nodes: Kubectl) -> None:
    lost = runs("off")
    start(here, {run: run.job() for run in lost})
    operator = Operator(two_nodes.within("mpi-operator"))
    replicas = operator.replicas_desired()
    operator.kubectl.run("scale", "deployment/mpi-operator", "--replicas=0")
    operator.kubectl.until(PODS, lambda pods: not pods)
    project("hack/cluster", "stop", "--name", CLUSTER, "node-2")
    ends = ends_of(here, lost)
    operator.kubectl.run("scale", "deployment/mpi-operator", f"--replicas={replicas}")
    judge(here, "worker's node: all processes killed, and no operator", lost, ends, forgiven=HASTY)
    ended = {run.name for run in ends}
    here.until(MPIJOBS, lambda jobs: ended <= {job["metadata"]["name"] for job in jobs if has_ended(job)})
