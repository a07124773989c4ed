"""The table of hangs (docs/fault-tolerance.md): a node, a container or a server is lost, and `mpirun` ends or continues in time.

Each job has a rank on either node. Jobs of all libraries run side by side under one fault. With mpiop-agent (`Injected`) every bound
must hold; what the ssh of images (`Image`) does is measured for comparison. The table goes to build/e2e/hangs.md.
MPIOP_E2E_KINDS picks kinds of jobs, and MPIOP_E2E_RUNS specifies how many there are of each.

MPIOP_E2E_OPERATOR=kubeflow measures Kubeflow's operator instead: no job but that of the stopped kubelet is judged then.
"""

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from e2e.clusters import IS_CURRENT, ROOT, deploy_operator, embedded_cluster, load_images, output_shown, project
from e2e.conftest import NAME, namespace_of_test
from e2e.jobs import annotated, condition, has_ended, is_true, last_launcher_log, launcher_container, launcher_pod, priorities, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import PLAIN_IMAGES, SSHD_IMAGES
from e2e.losses import (
    IS_KUBEFLOW,
    KINDS,
    START_SECONDS,
    End,
    Run,
    ends_of,
    first_process,
    freeze,
    one_a_node,
    ranks_ended,
    runs,
    start,
)
from e2e.operator_pods import Operator
from e2e.stand_ins import NODES
from e2e.test_kubeflow import load_theirs
from e2e.test_restarts import reasons
from e2e.volumes import checkpoint_volume
from mpiop.kube.resources import MPIJOBS, PODS

CLUSTER: Final = f"{NAME}-hangs"
FIRST, SECOND = f"mpiop-{CLUSTER}", f"mpiop-{CLUSTER}-2"
TABLE: Final = ROOT / "build" / "e2e" / "hangs.md"
ROUNDS: Final = 400
"""They take some minutes on two cores."""
IMAGES: Final = ("mpi4py", *PLAIN_IMAGES, "pi-openmpi5", "pi-intel")


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl on a cluster of two nodes, with the operator on the first, where nothing happens to it."""
    if IS_CURRENT:
        pytest.skip("the nodes of the user's own cluster are out of reach")
    TABLE.unlink(missing_ok=True)
    with output_shown(request), embedded_cluster(CLUSTER, "--nodes", "2") as cluster:
        cluster.run("cordon", SECOND)
        if IS_KUBEFLOW:
            deploy_kubeflow(cluster, tmp_path_factory.mktemp("kubeflow"))
        else:
            deploy(cluster)
        cluster.run("uncordon", SECOND)
        yield cluster


def deploy(cluster: Kubectl) -> None:
    """Deploy our operator, which brings mpiop-agent without an init container: one in each Pod would ask for more CPU than is there."""
    load_images(CLUSTER, "operator", *IMAGES)
    deploy_operator(cluster)
    operator = Operator(cluster.within("mpi-operator"))
    flag = {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--agent-delivery=Mount"}
    operator.kubectl.run("patch", "deployment", "mpi-operator", "--type=json", f"--patch={json.dumps([flag])}")
    operator.wait_until_ready()


def deploy_kubeflow(cluster: Kubectl, folder: Path) -> None:
    load_images(CLUSTER, *SSHD_IMAGES)
    cluster.run("apply", "--server-side", f"--filename={load_theirs(CLUSTER, folder)}")
    cluster.within("mpi-operator").run("rollout", "status", "deployment/mpi-operator", f"--timeout={START_SECONDS}s")


@pytest.fixture
def here(two_nodes: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own, where both nodes are healthy before and after."""
    with namespace_of_test(two_nodes, request) as made:
        try:
            yield made
        finally:
            project("hack/cluster", "up", "--name", CLUSTER, "--nodes", "2")


@contextlib.contextmanager
def cut_off() -> Iterator[None]:
    """Cut the second node off meanwhile: nothing reaches it, and nobody is notified."""
    link = ("hack/cluster", "exec", "--name", CLUSTER, "--network-only", "--", "ip", "link", "set", "node-2")
    project(*link, "down")
    try:
        yield
    finally:
        project(*link, "up")


def add_row(fault: str, outcomes: Mapping[Run, str]) -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    cells = " | ".join("; ".join(outcome for run, outcome in outcomes.items() if run.kind == kind) for kind in KINDS)
    if not TABLE.exists():
        head = " | ".join(f"{kind.library}, {kind.mode}" for kind in KINDS)
        TABLE.write_text(f"| fault | {head} |\n|---{'|---' * len(KINDS)}|\n", encoding="utf-8")
    with TABLE.open("a", encoding="utf-8") as table:
        table.write(f"| {fault} | {cells} |\n")


def judge(here: Kubectl, fault: str, awaited: Sequence[Run], ends: Mapping[Run, End]) -> None:
    """Write the row, and fail unless every `mpirun` that must has ended, and none with 0."""
    add_row(fault, {run: f"{ends[run].seconds:.0f} s, {ends[run].exit_code}" if run in ends else "hangs" for run in awaited})
    bound = [run for run in awaited if run.is_bound]
    wrong = [run for run in bound if run not in ends or ends[run].exit_code == 0]
    logs = {run.name: here.attempt("logs", f"--selector={run.labels()}", "--tail=20").stdout for run in wrong}
    assert not wrong, f"{fault}: {[(run.name, ends.get(run)) for run in wrong]}\n{logs}"


def test_faults_of_one_worker(here: Kubectl) -> None:
    """A container is frozen, a server or daemon is killed, a Pod is deleted by force; other jobs continue without their node's kubelet."""
    frozen, killed, beheaded, deleted, orphaned = (runs(fault) for fault in ("frozen", "killed", "daemon", "deleted", "orphaned"))
    start(here, {run: run.job(launcher=FIRST) for run in (*frozen, *killed, *beheaded, *deleted, *orphaned)})
    victims = {run: first_process(run.worker_on(here, SECOND)) for run in (*frozen, *killed, *beheaded)}
    daemons = [run.daemon_below(victims[run]) for run in beheaded]
    project("hack/cluster", "stop", "--name", CLUSTER, "kubelet-2")
    pods = [run.worker_on(here, FIRST) for run in deleted]
    try:
        for run in frozen:
            freeze(victims[run], frozen=True)
        for pid in (*(victims[run] for run in killed), *daemons):
            os.kill(pid, signal.SIGKILL)
        here.run("delete", "pods", "--force", "--grace-period=0", "--wait=false", *pods)
        ends = ends_of(here, (*frozen, *killed, *beheaded, *deleted))
    finally:
        for run in frozen:
            freeze(victims[run], frozen=False)
    here.until_one(NODES, SECOND, lambda node: not is_true(node, "Ready"))
    judge_all(
        lambda: judge(here, "worker's container frozen", frozen, ends),
        lambda: judge(here, "sshd killed", killed, ends),
        lambda: judge(here, "daemon of mpirun killed", beheaded, ends),
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
    add_row(fault, {run: "goes on" if found and found[run].exit_code == 0 else str(found) for run, found in ended.items()})
    wrong = {run.name: found for run, found in ended.items() if not found or found[run].exit_code}
    assert not wrong, wrong


def test_a_node_whose_network_is_cut(here: Kubectl) -> None:
    """It has a worker of some jobs, and the launcher of others: the ranks of those must end, because nobody is left to end them."""
    worker_lost, launcher_lost = runs("cut"), runs("headless")
    jobs = {run: run.job(launcher=FIRST) for run in worker_lost} | {run: run.job(launcher=SECOND, workers=FIRST) for run in launcher_lost}
    start(here, jobs)
    begun = time.monotonic()
    with cut_off(), ThreadPoolExecutor(1) as pool:
        ranks = pool.submit(ranks_ended, launcher_lost, begun)
        ends = ends_of(here, worker_lost)
    left = {run: f"{ranks.result()[run]:.0f} s" if run in ranks.result() else "ranks stay" for run in launcher_lost}
    add_row("launcher's node: network cut, until its ranks have ended", left)
    late = [run.name for run in launcher_lost if run.is_bound and run not in ranks.result()]
    judge(here, "worker's node: network cut", worker_lost, ends)
    assert not late


def test_a_node_that_is_switched_off_while_no_operator_runs(here: Kubectl, two_nodes: Kubectl) -> None:
    lost = runs("off")
    start(here, {run: run.job(launcher=FIRST) for run in lost})
    operator = Operator(two_nodes.within("mpi-operator"))
    replicas = operator.replicas_desired()
    operator.stop()
    project("hack/cluster", "stop", "--name", CLUSTER, "node-2")
    ends = ends_of(here, lost)
    operator.kubectl.run("scale", "deployment/mpi-operator", f"--replicas={replicas}")
    judge(here, "worker's node: all processes killed, and no operator", lost, ends)
    ended = {run.name for run in ends}
    here.until(MPIJOBS, lambda jobs: ended <= {job["metadata"]["name"] for job in jobs if has_ended(job)})


@pytest.fixture
def checkpoints(two_nodes: Kubectl, here: Kubectl) -> Iterator[None]:
    """A volume for the checkpoints that both nodes have, and two priorities."""
    with priorities(two_nodes, "low", "high"), checkpoint_volume(two_nodes, here.namespace):
        yield


@pytest.mark.skipif(IS_KUBEFLOW, reason="it needs restarts, which Kubeflow's operator has not")
@pytest.mark.usefixtures("checkpoints")
def test_a_job_with_checkpoints_survives_both_nodes_and_a_preemption(here: Kubectl, two_nodes: Kubectl) -> None:
    """A worker's node is lost, the launcher's node, and the room of a worker, each time with the operator's leader; the result is right."""
    here.run("create", "configmap", "checkpoint", f"--from-file={ROOT / 'examples/mpi4py/checkpoint.py'}")
    claim, example = yaml.safe_load_all((ROOT / "examples/mpi4py/checkpoint.yaml").read_text(encoding="utf-8"))
    here.apply(claim, calm_job(example), struck_job(example))
    operator = Operator(two_nodes.within("mpi-operator"))
    strike = partial(until_restarted, here, operator)
    assert node_of_launcher(here) == FIRST
    with cut_off():
        strike(1)
        two_nodes.run("cordon", FIRST)  # where the launcher must not be this time
    until_resumed(here)
    assert node_of_launcher(here) == SECOND
    two_nodes.run("uncordon", FIRST)
    with cut_off():
        strike(2)
    until_resumed(here)
    here.apply(important_pod(example))
    strike(3)
    here.run("delete", "pod", "important")
    struck = until_true(here, "pi", "Succeeded", timeout_seconds=400)
    assert reasons(struck) == ["NodeLost", "NodeLost", "Disrupted"]
    until_true(here, "calm", "Succeeded", timeout_seconds=400)
    last, undisturbed = (last_launcher_log(here, name) for name in ("pi", "calm"))
    assert last[0].startswith("goes on after round ")
    assert last[-1] == undisturbed[-1]


def calm_job(example: Obj) -> Obj:
    """Return a job of the first node, to which nothing happens."""
    job: Obj = json.loads(json.dumps(example))
    job["metadata"]["name"] = "calm"
    launcher_container(job)["command"][-2:] = ["/data/calm.json", str(ROUNDS)]
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": FIRST}
    return job


def struck_job(example: Obj) -> Obj:
    """Return a job with a worker on either node, where each takes half of the CPUs; its launcher rather runs on the first."""
    job: Obj = annotated(json.loads(json.dumps(example)), max_restarts="3")
    job["metadata"]["name"] = "pi"
    launcher_container(job)["command"][-2:] = ["/data/struck.json", str(ROUNDS)]
    launcher, worker = (job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"] for role in ("Launcher", "Worker"))
    first = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [FIRST]}]}
    launcher["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": first}]}}
    worker |= one_a_node("pi") | {"priorityClassName": "low"}
    worker["containers"][0]["resources"] = {"requests": {"cpu": f"{500 * (os.cpu_count() or 1)}m"}}
    return job


def important_pod(example: Obj) -> Obj:
    """Return a Pod that needs the room of the worker on the second node."""
    image = launcher_container(example)["image"]
    request = {"requests": {"cpu": f"{800 * (os.cpu_count() or 1)}m"}}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": SECOND},
        "priorityClassName": "high",
        "containers": [{"name": "main", "image": image, "command": ["sleep", "600"], "resources": request}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": spec}


def node_of_launcher(here: Kubectl) -> str:
    """Return the node of the running launcher of `pi`, when it has made progress."""
    launcher = launcher_pod(here, "pi", timeout_seconds=START_SECONDS)
    with here.following(launcher, timeout_seconds=START_SECONDS) as lines:
        assert any(re.match(r"round \d+[1-9] of", line) for line in lines), "it makes progress"
    return str(here.read(PODS, launcher)["spec"]["nodeName"])


def until_restarted(here: Kubectl, operator: Operator, count: int) -> None:
    """Kill the operator's leader, and return when the restart has begun."""
    operator.kubectl.run("delete", "pod", operator.until_led(), "--force", "--grace-period=0")
    here.until_one(MPIJOBS, "pi", lambda job: job["status"].get("restarts") == count, timeout_seconds=START_SECONDS)


def until_resumed(here: Kubectl) -> None:
    """Return when the launcher Job is resumed."""
    here.until_one(MPIJOBS, "pi", lambda job: condition(job, "Restarting")["status"] == "False", timeout_seconds=START_SECONDS)
