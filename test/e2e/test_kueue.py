"""MPIJobs in the queues of the real Kueue, installed by its own manifests on a cluster of its own."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from e2e.clusters import ROOT, operator_cluster, output_shown
from e2e.conftest import NAME, namespace_of_test
from e2e.jobs import LAUNCHER, WORKER, condition, held, is_true, launcher_pod, let_run, pi_job, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.neighbours import load_program, module_folder
from e2e.operator_pods import Operator
from e2e.shell import open_shell
from e2e.waiting import wait_until
from mpiop.kube.resources import MPIJOBS, PODS, Resource

CLUSTER = f"{NAME}-kueue"
MODULE = "sigs.k8s.io/kueue"
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
QUEUE = "kueue.x-k8s.io/queue-name"
FLAVOR = {"mpiop.test/flavor": "plain"}
"""What the guide's ResourceFlavor puts into the node selectors of the jobs that it admits."""


@pytest.fixture(scope="module")
def kueue(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl on a cluster where the operator and Kueue run."""
    folder = tmp_path_factory.mktemp("kueue")
    with operator_cluster(CLUSTER, request) as cluster:
        Operator(cluster.within("mpi-operator")).wait_until_ready()
        manifest = cluster.run("kustomize", str(module_folder("kueue", MODULE) / "config" / "default"))
        [image] = set(re.findall(r"image: (\S+/kueue:\S+)", manifest))
        with output_shown(request):
            load_program(CLUSTER, "kueue", "/manager", image, folder / "kueue.tar", user="65532:65532")
        # Its tag is a branch's, which would be pulled whatever is on the node.
        present = manifest.replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent")
        cluster.run("apply", "--server-side", "-f", "-", stdin=present)
        cluster.within("kueue-system").run(
            "rollout", "status", "deployment/kueue-controller-manager", "--timeout=120s", timeout_seconds=130
        )
        # It is Ready a moment before its Service routes to it.
        probe = json.dumps({"apiVersion": WORKLOADS.api_version, "kind": "ResourceFlavor", "metadata": {"name": "probe"}})
        wait_until("Kueue's webhooks answer", lambda: not cluster.attempt("create", "--dry-run=server", "-f", "-", stdin=probe).returncode)
        nodes = cluster.run("get", "nodes", "-o", "name").split()
        cluster.run("label", *nodes, *(f"{name}={value}" for name, value in FLAVOR.items()))
        yield cluster


@dataclass(frozen=True)
class Queue:
    """The LocalQueue of docs/kueue.md, whose quota is enough for one π job at a time."""

    here: Kubectl

    def submit(self, name: str, *, priority: str = "") -> None:
        """Put a job into the queue whose launcher waits for `finish`."""
        job = held(pi_job(name))
        job["metadata"]["labels"] = {QUEUE: "team-a"}
        if priority:
            job["spec"]["runPolicy"]["schedulingPolicy"] = {"priorityClass": priority}
        self.here.apply(job)

    def finish(self, name: str) -> Obj:
        """Let a job run to its end, and return it."""
        let_run(self.here, launcher_pod(self.here, name))
        return until_true(self.here, name, "Succeeded")

    def until_waiting(self, name: str) -> Obj:
        """Return the job when Kueue has reported that there is no room for it."""
        self.here.until(WORKLOADS, lambda all_: [condition(w, "QuotaReserved").get("status") for w in all_ if is_of(w, name)] == ["False"])
        waiting = until_true(self.here, name, "Suspended")
        assert waiting["status"]["summary"]["state"] == "Queued"
        return waiting

    def workload(self, name: str) -> Obj:
        """Return the Workload that Kueue made for a job."""
        [workload] = [each for each in self.here.read_all(WORKLOADS) if is_of(each, name)]
        return workload

    def activate(self, name: str, *, active: bool) -> None:
        """Let Kueue take a job out, or in again."""
        workload = self.workload(name)["metadata"]["name"]
        self.here.run("patch", "workload", workload, "--type=merge", "--patch", json.dumps({"spec": {"active": active}}))


def is_of(workload: Obj, job: str) -> bool:
    """Return whether `workload` is that of the MPIJob `job`."""
    return bool(workload["metadata"]["ownerReferences"][0]["name"] == job)


@pytest.fixture
def queue(kueue: Kubectl, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """A namespace with a queue, made as the guide shows."""
    with namespace_of_test(kueue, request) as here:
        shell = open_shell(here, ROOT, tmp_path_factory.mktemp("queue") / "kubeconfig")
        shell.follow("docs/kueue.md", "A queue")
        yield Queue(here)
        here.run("delete", "mpijobs", "--all")
        here.until(WORKLOADS, lambda workloads: not workloads)


def test_a_job_is_held_admitted_run_and_finished(queue: Queue) -> None:
    queue.submit("pi")
    running = until_true(queue.here, "pi", "Running")
    assert running["spec"]["runPolicy"]["suspend"] is False
    pods = [*queue.here.read_all(PODS, LAUNCHER), *queue.here.read_all(PODS, WORKER)]
    assert [pod["spec"]["nodeSelector"] for pod in pods] == [FLAVOR] * 3, "what Kueue chose reaches every Pod, the launcher's too"
    finished = queue.finish("pi")
    # A job that is admitted before the operator's first sync never has the condition.
    assert condition(finished, "Suspended").get("reason", "MPIJobResumed") == "MPIJobResumed"
    queue.here.until(WORKLOADS, lambda workloads: [is_true(each, "Finished") for each in workloads] == [True])


def test_a_second_job_waits_without_a_pod_until_there_is_room(queue: Queue) -> None:
    queue.submit("first")
    until_true(queue.here, "first", "Running")
    queue.submit("second")
    waiting = queue.until_waiting("second")
    assert waiting["spec"]["runPolicy"]["suspend"] is True
    assert queue.here.read_all(PODS, "training.kubeflow.org/job-name=second") == []
    queue.finish("first")
    until_true(queue.here, "second", "Running")
    queue.finish("second")


def test_the_job_of_higher_priority_comes_first(queue: Queue) -> None:
    for name, value in (("high", 1000), ("low", 10)):
        queue.here.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    queue.submit("first")
    until_true(queue.here, "first", "Running")
    queue.submit("low", priority="low")
    queue.until_waiting("low")
    queue.submit("high", priority="high")
    queue.until_waiting("high")
    queue.finish("first")
    until_true(queue.here, "high", "Running")
    assert is_true(queue.here.read(MPIJOBS, "low"), "Suspended")
    queue.finish("high")
    until_true(queue.here, "low", "Running")
    queue.finish("low")


def test_a_job_that_is_taken_out_leaves_its_room_and_runs_again_later(queue: Queue) -> None:
    queue.submit("pi")
    until_true(queue.here, "pi", "Running")
    queue.activate("pi", active=False)
    stopped = until_true(queue.here, "pi", "Suspended")
    assert not is_true(stopped, "Running")
    queue.here.until(PODS, lambda pods: not pods)
    queue.activate("pi", active=True)
    again = until_true(queue.here, "pi", "Running")
    assert again["status"]["startTime"] >= stopped["status"]["startTime"]
    assert [pod["spec"]["nodeSelector"] for pod in queue.here.read_all(PODS)] == [FLAVOR] * 3
    queue.finish("pi")


def test_a_job_that_multikueue_manages_is_left_alone(queue: Queue) -> None:
    job = pi_job("elsewhere")
    job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    queue.here.apply(job, pi_job("ours"))
    until_true(queue.here, "ours", "Succeeded")
    left = queue.here.read(MPIJOBS, "elsewhere")
    assert left["status"] == {"observedGeneration": -1}, "the default, which says that nobody has read it"
    names = queue.here.run("get", "services,configmaps,secrets,jobs,pods", "-o", "name")
    assert "elsewhere" not in names


def test_the_commands_of_the_guide_show_the_queue(queue: Queue, tmp_path_factory: pytest.TempPathFactory) -> None:
    shell = open_shell(queue.here, ROOT, tmp_path_factory.mktemp("guide") / "kubeconfig")
    shell.follow("docs/kueue.md", "A job in the queue")
    until_true(queue.here, "pi", "Succeeded")
    shown = shell.follow("docs/kueue.md", "What waits, and why")
    assert "team-a" in shown
    assert "mpijob-pi-" in shown
