"""Why a job waits: for each cause that can be had on a node, STATE shows the reason, and the condition names the culprit and what to do.

All broken jobs run at the same time, beside one that is well.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e.clusters import ROOT, paused
from e2e.conftest import NAME
from e2e.jobs import condition, held, is_true, pi_job, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.shell import open_shell
from mpiop.controller.status.causes import CAUSES
from mpiop.kube.resources import EVENTS, MPIJOBS, Resource

SEEN_SECONDS = 60
FALSE = ["/bin/sh", "-c", "exit 3"]
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


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


def too_much_memory(_launcher: Obj, worker: Obj) -> None:
    container(worker)["resources"] = {"requests": {"memory": "9Ti"}}


def no_priority_class(_launcher: Obj, worker: Obj) -> None:
    worker["template"]["spec"]["priorityClassName"] = "no-such-priority"


def no_runtime_class(_launcher: Obj, worker: Obj) -> None:
    worker["template"]["spec"]["runtimeClassName"] = "no-such-runtime"


def failing_init_container(_launcher: Obj, worker: Obj) -> None:
    with_init(worker)


def failing_sidecar(launcher: Obj, worker: Obj) -> None:
    with_init(worker, restartPolicy="Always")
    container(launcher)["command"] = ["sleep", "600"]  # sshd runs beside it, so the job would succeed
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
    Broken("no-room", too_much_memory, "Unschedulable", "Insufficient memory"),
    Broken("no-priority", no_priority_class, "Forbidden", "no PriorityClass with name no-such-priority was found"),
    Broken("no-runtime", no_runtime_class, "Forbidden", 'RuntimeClass "no-such-runtime" not found'),
    Broken("init", failing_init_container, "InitContainerFailed", "container prepare of pod init-worker-0 ended: exit code 3"),
    Broken("sidecar", failing_sidecar, "InitContainerFailed", "container prepare of pod sidecar-worker-0 ended: exit code 3"),
    Broken(
        "launcher-init", failing_init_container_of_the_launcher, "InitContainerFailed", "container prepare of pod launcher-init-launcher"
    ),
    Broken("worker-ends", worker_that_ends, "WorkerEnded", "pod worker-ends-worker-0 ended: exit code 3"),
    Broken("worker-crashes", worker_that_crashes, "CrashLoopBackOff", "pod worker-crashes-worker-0 ended: exit code 3"),
    Broken("out-of-memory", worker_without_memory, "OOMKilled", "exit code 137 (SIGKILL), OOMKilled"),
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


def state(job: Obj) -> str:
    """Return what `kubectl get mpijobs` shows as STATE."""
    return str(job.get("status", {}).get("summary", {}).get("state", ""))


@pytest.fixture(scope="module")
def here(module_namespace: Kubectl) -> Iterator[Kubectl]:
    """A namespace with all broken jobs, and a good one."""
    module_namespace.apply(*map(broken_job, BROKEN), pi_job("good"))
    yield module_namespace
    module_namespace.run("delete", "mpijobs", "--all", "--wait=false")


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.id)
def test_a_job_says_why_it_waits(broken: Broken, here: Kubectl) -> None:
    job = here.until_one(MPIJOBS, broken.id, lambda found: state(found) == broken.reason, timeout_seconds=SEEN_SECONDS)
    problem = condition(job, "Stalled" if is_true(job, "Stalled") else "Degraded")
    assert (problem["status"], problem["reason"]) == ("True", broken.reason)
    assert broken.words in problem["message"]
    assert problem["message"].endswith(CAUSES[broken.reason].advice)


def test_a_job_beside_them_is_not_disturbed(here: Kubectl) -> None:
    assert not condition(until_true(here, "good", "Succeeded"), "Failed")


def test_events_of_a_waiting_job_have_its_reason(here: Kubectl) -> None:
    here.until_one(MPIJOBS, "no-priority", lambda found: is_true(found, "Stalled"))
    here.until(EVENTS, lambda events: "Forbidden" in {e["reason"] for e in events if e["involvedObject"]["name"] == "no-priority"})
    assert "MPIJobFailed" not in {event["reason"] for event in here.read_all(EVENTS)}


def test_a_quota_that_refuses_the_launcher_is_quoted(namespace: Kubectl) -> None:
    namespace.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    namespace.until_one(QUOTAS, "few", lambda quota: "used" in quota.get("status", {}))
    namespace.apply(one_worker("pi"))
    job = namespace.until_one(MPIJOBS, "pi", lambda found: is_true(found, "Stalled"))
    stalled = condition(job, "Stalled")
    assert stalled["reason"] == "QuotaExceeded"
    assert "exceeded quota: few" in stalled["message"]
    namespace.run("patch", "resourcequota", "few", "--type=merge", '--patch={"spec": {"hard": {"pods": "4"}}}')
    until_true(namespace, "pi", "Succeeded")


def test_a_typing_error_in_a_template_is_shown(namespace: Kubectl) -> None:
    job = one_worker("pi")
    container(job["spec"]["mpiReplicaSpecs"]["Worker"])["imagePullPolcy"] = "Never"
    namespace.apply(job)
    ended = until_true(namespace, "pi", "Finished")
    assert 'Pod: unknown field "spec.containers[0].imagePullPolcy"' in condition(ended, "Warnings")["message"]
    assert [row["type"] for row in ended["status"]["conditions"]][-2:] == ["Finished", "Succeeded"]
    namespace.until(EVENTS, lambda events: "TemplateWarnings" in {event["reason"] for event in events})


def test_workers_are_scaled_as_those_of_a_deployment(namespace: Kubectl) -> None:
    namespace.apply(held(one_worker("pi")))
    until_true(namespace, "pi", "Running")
    namespace.run("scale", "mj/pi", "--replicas=2")
    namespace.until_one(MPIJOBS, "pi", lambda job: job["status"]["summary"]["workers"] == "2/2")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_the_last_words_of_a_launcher_outlive_its_pod(policy: str, namespace: Kubectl, cluster: Kubectl, tmp_path: Path) -> None:
    cluster.run("delete", "clusterrole", "mpi-operator-launcher-logs", "--ignore-not-found")
    open_shell(namespace, ROOT, tmp_path / "kubeconfig").follow("docs/troubleshooting.md", "The log of a launcher that is gone")
    job = one_worker("pi")
    job["spec"]["runPolicy"] |= {"backoffLimit": 0, "cleanPodPolicy": "All"}
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]
    launcher["restartPolicy"] = policy
    container(launcher)["command"] = ["/bin/sh", "-c", "mpirun -n 1 hostname && echo the solver diverged >&2 && exit 3"]
    namespace.apply(job)
    failed = until_true(namespace, "pi", "Failed")
    assert failed["status"]["lastFailure"]["log"].endswith("the solver diverged")
    # The kubelet may restart the container once more before the Job controller sees that the limit is reached.
    attempt, *others = failed["status"]["attempts"]
    assert len(others) <= (policy == "OnFailure")
    assert (attempt["number"], attempt["exitCode"], attempt["reason"]) == (1, 3, "Error")
    assert attempt["pod"].startswith("pi-launcher-")
    assert attempt["node"]
    assert condition(failed, "Failed")["message"].endswith("the solver diverged")


def test_a_namespace_for_restricted_pods_is_quoted(namespace: Kubectl) -> None:
    namespace.run("label", "namespace", namespace.namespace, "pod-security.kubernetes.io/enforce=restricted")
    namespace.apply(pi_job("pi"))
    job = namespace.until_one(MPIJOBS, "pi", lambda found: is_true(found, "Stalled"))
    assert condition(job, "Stalled")["reason"] == "Forbidden"
    assert 'violates PodSecurity "restricted' in condition(job, "Stalled")["message"]


def test_an_object_in_the_way_is_named(namespace: Kubectl) -> None:
    namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pi-config"}})
    namespace.apply(one_worker("pi"))
    stalled = stalled_for("ResourceExists", namespace)
    assert 'Resource "pi-config" of Kind "ConfigMap" already exists' in stalled["message"]
    namespace.run("delete", "configmap", "pi-config")
    until_true(namespace, "pi", "Succeeded")


def test_what_is_left_of_a_former_job_is_named(namespace: Kubectl) -> None:
    namespace.apply(one_worker("pi"))
    until_true(namespace, "pi", "Finished")
    namespace.run("patch", "secret", "pi-ssh", "--type=merge", '--patch={"metadata": {"finalizers": ["example.com/kept"]}}')
    namespace.run("delete", "mpijob", "pi")
    namespace.apply(one_worker("pi"))
    assert f"Secret {namespace.namespace}/pi-ssh of a former owner" in stalled_for("PredecessorExists", namespace)["message"]
    namespace.run("patch", "secret", "pi-ssh", "--type=merge", '--patch={"metadata": {"finalizers": null}}')
    until_true(namespace, "pi", "Succeeded")


def test_a_webhook_that_does_not_answer_is_quoted(namespace: Kubectl, cluster: Kubectl) -> None:
    name = f"{namespace.namespace}.example.com"
    webhook = {
        "name": name,
        "clientConfig": {"service": {"namespace": namespace.namespace, "name": "nobody"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = "ValidatingWebhookConfiguration"
    cluster.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]})
    try:
        namespace.apply(one_worker("pi"))
        assert f'failed calling webhook "{name}"' in stalled_for("WriteFailed", namespace)["message"]
    finally:
        cluster.run("delete", kind, name)
    until_true(namespace, "pi", "Succeeded")


def test_a_worker_whose_node_is_lost_is_named(namespace: Kubectl, is_current_cluster: bool) -> None:  # noqa: FBT001 - a fixture
    if is_current_cluster:
        pytest.skip("a node of the user's own cluster is not stopped")
    job = held(one_worker("pi"))
    lost = [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"} for taint in ("not-ready", "unreachable")]
    roles = job["spec"]["mpiReplicaSpecs"]
    roles["Launcher"]["template"]["spec"]["tolerations"] = lost
    roles["Worker"]["template"]["spec"]["tolerations"] = [toleration | {"tolerationSeconds": 1} for toleration in lost]
    namespace.apply(job)
    until_true(namespace, "pi", "Running")
    with paused("kubelet", NAME):
        degraded = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "NodeLost", timeout_seconds=120)
    assert "pod pi-worker-0 cannot be deleted, because its node" in condition(degraded, "Degraded")["message"]
    job = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "Running", timeout_seconds=120)
    assert is_true(job, "Running")


def stalled_for(reason: str, here: Kubectl) -> Obj:
    """Return the condition Stalled of the job `pi` as soon as it has that reason."""
    job = here.until_one(MPIJOBS, "pi", lambda found: state(found) == reason, timeout_seconds=SEEN_SECONDS)
    return condition(job, "Stalled")
