"""Jobs that lose Pods: with a budget of restarts they continue, a Hydra launcher that hangs is ended, and the result is right."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from e2e.broken import container, with_volume
from e2e.causes import check_shown_soon
from e2e.clusters import IS_CURRENT, ROOT, load_images, paused
from e2e.conftest import NAME
from e2e.jobs import (
    LAUNCHER,
    annotated,
    condition,
    evict,
    held,
    last_launcher_log,
    launcher_container,
    let_run,
    pi_job,
    priorities,
    running_launcher,
    until_true,
    waiting_for,
    with_script,
)
from e2e.kubectl import DEPLOYMENTS, Kubectl, Obj
from e2e.operator_pods import Operator
from e2e.volumes import checkpoint_volume
from mpiop.clock import format_time, parse_time
from mpiop.kube.resources import EVENTS, JOBS, MPIJOBS, PODS

TIMEOUT_SECONDS = 15
ROUNDS = 240
MARK = "/tmp/rank"  # noqa: S108 - in a container
UNREACHABLE = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]


def resilient(restarts: int = 1, *, maximum: int = 1, **annotations: str) -> Obj:
    """Return a job without retries whose program computes for ten minutes, and after so many restarts to its end."""
    computes = f'mpirun -n 2 sh -c "touch {MARK}; exec sleep 600"'
    job = with_script(
        pi_job(workers=2), f'echo "after $MPIOP_RESTART_COUNT"; [ "$MPIOP_RESTART_COUNT" -ge {restarts} ] && exec "$@"; exec {computes}'
    )
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    job["spec"]["runPolicy"] = {"backoffLimit": 0, "cleanPodPolicy": "Running"}
    return annotated(job, max_restarts=str(maximum), **annotations)


def until_computing(here: Kubectl, worker: str = "pi-worker-1") -> None:
    """Return when `mpirun` has started a rank on the worker."""
    until_true(here, "pi", "Running")
    here.run("exec", worker, "--", "timeout", "60", "sh", "-c", f"until [ -e {MARK} ]; do sleep 0.1; done")


def make_unreachable(here: Kubectl, pod: str) -> None:
    """Mark a Pod as the node lifecycle controller does when its node does not answer."""
    body = json.dumps({"status": {"conditions": UNREACHABLE}})
    here.run("patch", "pod", pod, "--subresource=status", "--type=strategic", "--patch", body)


def reasons(job: Obj) -> list[str]:
    """Return why the job was restarted, each time."""
    return [row["reason"] for row in job["status"].get("lastRestarts", [])]


def end_of(here: Kubectl) -> Obj:
    """Return the job when it has succeeded; its launcher's log reports after which restart."""
    job = until_true(here, "pi", "Succeeded", timeout_seconds=180)
    log = last_launcher_log(here)
    assert f"after {job['status']['restarts']}" in log
    assert any("pi is approximately 3.14" in line for line in log)
    return job


HELD = "example.com/held"
RESTARTED = ("pi-worker-1", "late-worker-1")


def hold(here: Kubectl, *pods: str, finalizers: tuple[str, ...] = (HELD,)) -> None:
    """Let the Pods stay when they are deleted; without `finalizers` let them go."""
    for pod in pods:
        here.run("patch", "pod", pod, "--type=merge", f"--patch={json.dumps({'metadata': {'finalizers': list(finalizers)}})}")


def a_minute_after(here: Kubectl, pod: str, field: str) -> str:
    return format_time(parse_time(here.read(PODS, pod)["metadata"][field]) + timedelta(seconds=60))


@pytest.fixture(scope="module")
def waiting(module_namespace: Kubectl) -> Kubectl:
    """A namespace with jobs that wait for Pods which do not go, or nobody acts on; that is reported while the first tests run."""
    late, resumed, alone = resilient(), held(pi_job("resumed", workers=1)), pi_job("alone", workers=1)
    late["metadata"]["name"] = "late"
    late["spec"]["runPolicy"]["activeDeadlineSeconds"] = 120
    alone["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "no-such-scheduler"
    module_namespace.apply(resilient(), late, resumed, alone)
    until_true(module_namespace, "resumed", "Running")
    for worker in RESTARTED:
        until_computing(module_namespace, worker)
    hold(module_namespace, *RESTARTED, "resumed-worker-0")
    module_namespace.run("delete", "pod", *RESTARTED, "--wait=false")
    for suspend, shown in ((True, "Suspended"), (False, "Restarting")):
        patch = json.dumps({"spec": {"runPolicy": {"suspend": suspend}}})
        module_namespace.run("patch", "mpijob", "resumed", "--type=merge", f"--patch={patch}")
        until_true(module_namespace, "resumed" if suspend else "pi", shown)
    return module_namespace


LOSSES: dict[str, tuple[Callable[[Kubectl], object], str]] = {
    "forced": (lambda here: here.run("delete", "pod", "pi-worker-1", "--force", "--grace-period=0"), "WorkerDeleted"),
    "deleted": (lambda here: here.run("delete", "pod", "pi-worker-1", "--wait=false"), "WorkerDeleted"),
    "drained": (lambda here: evict(here, "pi-worker-1"), "Disrupted"),
    "launcher-drained": (lambda here: evict(here, running_launcher(here)), "Disrupted"),
}


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize(("lose", "reason"), LOSSES.values(), ids=LOSSES)
def test_a_loss_costs_a_restart_and_no_retry(lose: Callable[[Kubectl], object], reason: str, namespace: Kubectl) -> None:
    namespace.apply(resilient())
    until_computing(namespace)
    lose(namespace)
    job = end_of(namespace)
    assert reasons(job) == [reason]
    assert condition(job, "Suspended") == {}
    assert job["status"]["summary"]["restarts"] == "1"


def test_a_worker_that_its_node_evicts_is_replaced_if_the_job_has_a_budget(namespace: Kubectl) -> None:
    job = resilient(avoid_failed_nodes="false")
    with_volume(job["spec"]["mpiReplicaSpecs"]["Worker"], emptyDir={"sizeLimit": "1Mi"})
    namespace.apply(job)
    until_computing(namespace)
    namespace.run("exec", "pi-worker-1", "--", "dd", "if=/dev/zero", "of=/data/large", "bs=1M", "count=8")
    assert reasons(end_of(namespace))[0] in {"Disrupted", "WorkerEnded"}, "the kubelet does not always tell why"


@pytest.mark.skipif(IS_CURRENT, reason="no Pod of the user's own cluster is preempted")
def test_preemption_costs_a_restart(namespace: Kubectl, cluster: Kubectl) -> None:
    cores = int(cluster.run("get", "nodes", "--output=jsonpath={.items[0].status.allocatable.cpu}"))
    low, high = (f"{namespace.namespace}-{word}"[:63] for word in ("low", "high"))
    job = resilient()
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    container(worker)["resources"] = {"requests": {"cpu": f"{300 * cores}m"}}
    worker["template"]["spec"]["priorityClassName"] = low
    with priorities(cluster, low, high):
        namespace.apply(job)
        until_computing(namespace)
        important = {
            "containers": [{"name": "main", "image": container(worker)["image"], "command": ["sleep", "600"]}],
            "priorityClassName": high,
        }
        important["containers"][0]["resources"] = {"requests": {"cpu": f"{600 * cores}m"}}  # type: ignore[index]  # as written above
        namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": important})
        waiting = namespace.until_one(MPIJOBS, "pi", lambda found: bool(waiting_for(found)))
        assert condition(waiting, "Restarting")["status"] == "True"
        assert namespace.read(JOBS, "pi-launcher")["spec"]["suspend"] is True, "no launcher runs while its workers have no room"
        namespace.run("delete", "pod", "important", "--now")
        assert reasons(end_of(namespace)) == ["Disrupted"]


def test_a_job_whose_budget_is_used_up_says_why_each_try_ended(namespace: Kubectl) -> None:
    namespace.apply(resilient(9, maximum=1))
    for _ in range(2):
        until_computing(namespace)
        launcher = running_launcher(namespace)
        namespace.run("delete", "pod", "pi-worker-1", "--force", "--grace-period=0")
        namespace.until(PODS, lambda pods, launcher=launcher: launcher not in {pod["metadata"]["name"] for pod in pods}, labels=LAUNCHER)  # type: ignore[misc]  # bound now
    failed = condition(until_true(namespace, "pi", "Failed"), "Failed")
    assert failed["reason"] == "ReachedMaxRestarts"
    assert failed["message"].startswith("Restart limit of 1 reached after 2 attempts. attempt 2: WorkerDeleted: worker pi-worker-1")
    assert "attempt 1: WorkerDeleted" in failed["message"]


def test_a_program_that_fails_by_itself_costs_no_restart_and_disturbs_nobody(namespace: Kubectl) -> None:
    job = resilient()
    launcher_container(job)["command"] = ["sh", "-c", "exit 3"]
    namespace.apply(job)
    failed = until_true(namespace, "pi", "Failed")
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded/Error"
    assert "restarts" not in failed["status"]
    namespace.apply(pi_job("next"))
    until_true(namespace, "next", "Succeeded")


def test_an_annotation_that_is_made_wrong_is_told_and_the_job_goes_on(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job()))
    until_true(namespace, "pi", "Running")
    since = format_time(datetime.now(UTC))
    namespace.run("annotate", "mpijob", "pi", "mpiop.kubeflow.org/max-restarts=often")
    until_true(namespace, "pi", "Degraded")
    check_shown_soon("pi", "AnnotationIgnored", namespace, since=since)
    let_run(namespace, running_launcher(namespace))
    until_true(namespace, "pi", "Succeeded")


def test_a_worker_on_a_node_that_does_not_answer_is_reported_and_replaced(namespace: Kubectl) -> None:
    namespace.apply(resilient())
    until_computing(namespace)
    first = namespace.read(PODS, "pi-worker-1")["metadata"]["uid"]
    # This kubelet is healthy, and would report it.
    with contextlib.nullcontext() if IS_CURRENT else paused("kubelet", NAME):
        make_unreachable(namespace, "pi-worker-1")
        job = namespace.until_one(MPIJOBS, "pi", lambda job: bool(reasons(job)), timeout_seconds=10)
        assert reasons(job) == ["NodeLost"]
        assert "pod pi-worker-1 cannot be reached, because its node" in job["status"]["lastRestarts"][0]["message"]
        namespace.until(PODS, lambda pods: first not in {pod["metadata"]["uid"] for pod in pods})  # by force: nobody else can end it
    end_of(namespace)


def test_what_does_not_go_and_what_nobody_acts_on_is_reported_after_a_minute_and_a_deadline_ends_the_wait(waiting: Kubectl) -> None:
    def is_shown(job: Obj) -> bool:
        return HELD in job["status"]["summary"].get("message", "")

    shown = [waiting.until_one(MPIJOBS, name, is_shown, timeout_seconds=120) for name in ("pi", "resumed")]
    assert [condition(job, "Running")["status"] for job in shown] == ["True", "False"]
    check_shown_soon("pi", "StuckTerminating", waiting, since=a_minute_after(waiting, "pi-worker-1", "deletionTimestamp"))
    check_shown_soon("resumed", "StuckTerminating", waiting, since=a_minute_after(waiting, "resumed-worker-0", "deletionTimestamp"))
    check_shown_soon("alone", "Unhandled", waiting, since=a_minute_after(waiting, "alone-worker-0", "creationTimestamp"))
    failed = until_true(waiting, "late", "Failed", timeout_seconds=120)
    assert condition(failed, "Failed")["reason"] == "DeadlineExceeded"
    assert reasons(failed) == ["WorkerDeleted"]
    hold(waiting, *RESTARTED, "resumed-worker-0", finalizers=())
    until_true(waiting, "resumed", "Running")
    end_of(waiting)


@pytest.fixture
def impatient(operator: Operator) -> Iterator[None]:
    """Let the operator wait for a launcher that hangs for a short time only."""
    if IS_CURRENT:
        pytest.skip("the flags of the user's own operator stay")
    add = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": f"--lost-worker-timeout={TIMEOUT_SECONDS}s"}]
    operator.kubectl.run("patch", "deployment", "mpi-operator", "--type=json", "--patch", json.dumps(add))
    operator.wait_until_ready()
    yield
    index = len(operator.kubectl.read(DEPLOYMENTS, "mpi-operator")["spec"]["template"]["spec"]["containers"][0]["args"]) - 1
    remove = [{"op": "remove", "path": f"/spec/template/spec/containers/0/args/{index}"}]
    operator.kubectl.run("patch", "deployment", "mpi-operator", "--type=json", "--patch", json.dumps(remove))
    operator.wait_until_ready()


@pytest.mark.usefixtures("impatient")
def test_a_launcher_of_hydra_that_hangs_without_its_worker_is_ended(namespace: Kubectl) -> None:
    load_images(NAME, "pi-mpich")
    job: Obj = yaml.safe_load((ROOT / "examples/v2beta1/pi/pi-mpich.yaml").read_text(encoding="utf-8"))
    job["metadata"] = {"name": "pi"}
    container(job["spec"]["mpiReplicaSpecs"]["Launcher"])["command"] = ["mpirun", "-n", "2", "sh", "-c", f"touch {MARK}; exec sleep 600"]
    container(job["spec"]["mpiReplicaSpecs"]["Launcher"]).pop("args", None)
    namespace.apply(job)
    until_computing(namespace)
    first = running_launcher(namespace)
    # As if the node were cut off: its processes run on, and mpiexec waits for them.
    with paused("kubelet", NAME):
        make_unreachable(namespace, "pi-worker-1")
        degraded = namespace.until_one(MPIJOBS, "pi", lambda job: "lostWorker" in job["status"], timeout_seconds=10)
        assert condition(degraded, "Degraded")["reason"] == "NodeLost"
        job = namespace.until_one(MPIJOBS, "pi", lambda job: bool(reasons(job)), timeout_seconds=TIMEOUT_SECONDS + 10)
    assert reasons(job) == ["NodeLost"]
    assert f"the launcher has not ended within {TIMEOUT_SECONDS} s" in job["status"]["lastRestarts"][0]["message"]
    job = namespace.until_one(MPIJOBS, "pi", lambda job: condition(job, "Restarting").get("reason") == "Restarted", timeout_seconds=90)
    assert condition(job, "Suspended") == {}
    assert running_launcher(namespace) != first
    assert not namespace.read(JOBS, "pi-launcher")["status"].get("failed")


def test_a_deleted_worker_is_reported_also_where_nothing_is_restarted(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job(workers=2)))
    until_true(namespace, "pi", "Running")
    node, deleted = namespace.read(PODS, "pi-worker-1")["spec"]["nodeName"], format_time(datetime.now(UTC))
    namespace.run("delete", "pod", "pi-worker-1", "--force", "--grace-period=0")
    check_shown_soon("pi", "WorkerDeleted", namespace, since=deleted)
    [event] = [each for each in namespace.read_all(EVENTS) if each["reason"] == "WorkerDeleted"]
    assert event["message"] == f"worker pi-worker-1 on node {node} was deleted while the launcher ran"
    job = namespace.until_one(MPIJOBS, "pi", lambda job: condition(job, "Degraded").get("status") == "False")
    assert "restarts" not in job["status"]


@pytest.fixture
def volume(cluster: Kubectl, namespace: Kubectl) -> Iterator[None]:
    if IS_CURRENT:
        pytest.skip("the user's own cluster has neither the volume nor the image")
    with checkpoint_volume(cluster, namespace.namespace):
        yield


@pytest.mark.usefixtures("volume")
def test_a_job_with_checkpoints_survives_three_restarts_and_its_result_is_right(namespace: Kubectl, operator: Operator) -> None:
    load_images(NAME, "mpi4py")
    namespace.run("create", "configmap", "checkpoint", f"--from-file={ROOT / 'examples/mpi4py/checkpoint.py'}")
    claim, job = yaml.safe_load_all((ROOT / "examples/mpi4py/checkpoint.yaml").read_text(encoding="utf-8"))
    calm, struck = json.loads(json.dumps(job)), annotated(job, max_restarts="3", restart="All")
    struck["metadata"]["name"], calm["metadata"]["name"] = "pi", "calm"
    struck["spec"]["runPolicy"]["backoffLimit"] = 0
    for each, file in ((struck, "struck"), (calm, "calm")):
        launcher_container(each)["command"][-2:] = [f"/data/{file}.json", str(ROUNDS)]
    namespace.apply(claim, struck, calm)
    reached = []
    for count in range(3):
        launcher = running_launcher(namespace)
        with namespace.following(launcher) as lines:
            reached.append(next(line for line in lines if re.match(r"round \d+[1-9] of", line)))
        if count == 1:
            evict(namespace, launcher)
        else:  # and the leader at the same moment
            operator.kubectl.run("delete", "pod", operator.until_led(), "--force", "--grace-period=0")
            namespace.run("delete", "pod", "pi-worker-1", "--force", "--grace-period=0")
        namespace.until_one(
            MPIJOBS,
            "pi",
            lambda job, count=count: job["status"].get("restarts") == count + 1 and condition(job, "Restarting")["status"] == "False",  # type: ignore[misc]  # bound now
            timeout_seconds=120,
        )
    assert reasons(until_true(namespace, "pi", "Succeeded", timeout_seconds=300)) == ["WorkerDeleted", "Disrupted", "WorkerDeleted"]
    until_true(namespace, "calm", "Succeeded", timeout_seconds=300)
    last, undisturbed = (last_launcher_log(namespace, name) for name in ("pi", "calm"))
    assert last[0].startswith("goes on after round "), (reached, last)
    assert last[-1] == undisturbed[-1]
    assert last[-1].startswith("pi is approximately 3.14")
