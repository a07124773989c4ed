"""Why a job waits: for each cause that can be had on a node, STATE shows the reason, and the condition names the culprit and what to do.

All broken jobs run at the same time, next to one that is healthy.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from e2e.broken import BROKEN, Broken, broken_job, container, no_sandbox_class, one_worker
from e2e.causes import SHOWN_SECONDS, check_shown_soon
from e2e.clusters import IS_CURRENT, paused
from e2e.conftest import NAME
from e2e.ends import ENDS, LAUNCHER_FAILED, End, ending_job
from e2e.failed_jobs import SHOWN, UNKNOWN, Shown, is_like, record, row_of, shown
from e2e.jobs import condition, held, is_true, pi_job, priorities, state, until_true, waiting_for
from e2e.kubectl import CommandError, Kubectl, NotSeenError, Obj
from e2e.libraries import PLAIN_IMAGES, SSHD_IMAGES
from e2e.plugin import Tool, new_tool
from e2e.test_failures import let_logs_be_read
from e2e.waiting import wait_until
from mpiop.clock import parse_time
from mpiop.controller.causes import CAUSES
from mpiop.kube.resources import EVENTS, JOBS, MPIJOBS, Resource

IMAGES: Final = (*SSHD_IMAGES, *PLAIN_IMAGES)
SEEN_SECONDS = 60
AT_ONCE = 6
"""Jobs that fail; with many more, what the nodes do to one another's containers is measured."""
ONLY_IN_EVENTS = {"FailedMount", "FailedCreatePodSandBox", "Unhealthy"}
"""The operator reads the events of one job a second, so of many at once the last would be shown late."""
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


def summary(job: Obj) -> str:
    """Return what `kubectl get mpijobs -o wide` shows as MESSAGE."""
    return str(job["status"]["summary"].get("message", ""))


def says(job: Obj, broken: Broken) -> bool:
    """Return whether the job shows the reason and the words of its cause."""
    return state(job) == broken.reason and broken.words in job["status"]["summary"].get("message", "")


@pytest.fixture(scope="module")
def here(module_namespace: Kubectl, cluster: Kubectl) -> Iterator[Kubectl]:
    """A namespace with all broken jobs, and a good one."""
    with no_sandbox_class(cluster):
        others = [broken for broken in BROKEN if broken.reason not in ONLY_IN_EVENTS]
        module_namespace.apply(*map(broken_job, others), pi_job("good"))
        for broken in others:
            module_namespace.until_one(MPIJOBS, broken.id, partial(says, broken=broken), timeout_seconds=SEEN_SECONDS)
        module_namespace.apply(*(broken_job(broken) for broken in BROKEN if broken not in others))
        yield module_namespace
        module_namespace.run("delete", "mpijobs", "--all", "--wait=false")


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.id)
def test_F69_a_job_says_why_it_waits(broken: Broken, here: Kubectl) -> None:
    job = here.until_one(MPIJOBS, broken.id, lambda found: says(found, broken), timeout_seconds=SEEN_SECONDS)
    problem = waiting_for(job) or condition(job, "Degraded")
    assert (problem["status"], problem["reason"]) == ("True", broken.reason)
    assert problem["message"].endswith(CAUSES[broken.reason].advice)
    check_shown_soon(broken.id, broken.reason, here)


@pytest.fixture(scope="module")
def seen(images: None, module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Shown]:
    """What each job that fails shows 10 s after its end at the latest; the operator may not read logs."""
    assert images is None
    tool = new_tool(module_namespace, tmp_path_factory.mktemp("tool"))
    SHOWN.unlink(missing_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        each = pool.map(lambda end: seen_soon(end, module_namespace, tool), ENDS)
        return {end.id: shows for end, shows in zip(ENDS, each, strict=True)}


def seen_soon(end: End, here: Kubectl, tool: Tool) -> Shown:
    """Return what a job shows once it has failed: as soon as it is what the page has, or after 10 s; or how it is, if it does not fail."""
    row = row_of(end)
    here.apply(ending_job(end))
    with contextlib.suppress(NotSeenError, CommandError):
        if end.harm is not None:
            end.harm(here, end.id)
        until_true(here, end.id, "Failed", timeout_seconds=SEEN_SECONDS * 2)
        here.until_one(MPIJOBS, end.id, lambda job: is_like(summary(job).replace(end.id, "pi"), row.pattern.message), timeout_seconds=10)
    found = shown(end, here, tool)
    record(end, found)
    return found


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.id)
def test_a_failed_job_reads_as_the_page_shows(end: End, seen: Mapping[str, Shown], module_namespace: Kubectl) -> None:
    assert seen[end.id].fits(row_of(end).pattern)
    job = module_namespace.read(MPIJOBS, end.id)
    failed = condition(job, "Failed")
    assert failed["reason"].startswith(end.reason)
    assert "SIGABRT" not in failed["message"]
    if end.reason == LAUNCHER_FAILED:
        # Counted from the end of the launcher's Job: a busy kubelet may report the end of the Pod late.
        ended = parse_time(condition(module_namespace.read(JOBS, f"{end.id}-launcher"), "Failed")["lastTransitionTime"])
        assert (parse_time(failed["lastTransitionTime"]) - ended).total_seconds() <= SHOWN_SECONDS
        assert failed["message"].startswith("Job has reached the specified backoff limit: pod ")
    # A deleted worker may be replaced before the launcher ends.
    assert end.harm is not None or "Resolved" not in {condition(job, type_).get("reason") for type_ in ("Stalled", "Degraded")}


def test_the_operator_applies_the_same_rules_where_it_may_read_logs(namespace: Kubectl, cluster: Kubectl, tmp_path: Path) -> None:
    let_logs_be_read(namespace, cluster, tmp_path)
    of_log = [end for end in ENDS if end.library == "openmpi" and not end.is_injected and row_of(end).pattern.message.startswith(UNKNOWN)]
    namespace.apply(*map(ending_job, of_log))
    for end in of_log:
        job = until_true(namespace, end.id, "Failed", timeout_seconds=SEEN_SECONDS * 2)
        assert is_like(summary(job).replace(end.id, "pi"), f"{row_of(end).pattern.why}…")


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
    assert "exceeded quota: few" in stalled_for("QuotaExceeded", namespace)["message"]
    namespace.run("patch", "resourcequota", "few", "--type=merge", '--patch={"spec": {"hard": {"pods": "4"}}}')
    until_true(namespace, "pi", "Succeeded")


def test_what_the_api_server_warns_of_in_a_template_is_shown(namespace: Kubectl) -> None:
    job = one_worker("pi")
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {"beta.kubernetes.io/os": "linux"}
    namespace.apply(job)
    ended = until_true(namespace, "pi", "Finished")
    assert "Pod: spec.nodeSelector[beta.kubernetes.io/os]: deprecated since" in condition(ended, "Warnings")["message"]
    assert [row["type"] for row in ended["status"]["conditions"]][-2:] == ["Finished", "Succeeded"]
    namespace.until(EVENTS, lambda events: "TemplateWarnings" in {event["reason"] for event in events})


def test_a_namespace_for_restricted_pods_is_quoted(namespace: Kubectl) -> None:
    namespace.run("label", "namespace", namespace.namespace, "pod-security.kubernetes.io/enforce=restricted")
    namespace.apply(pi_job("pi"))
    assert 'violates PodSecurity "restricted' in stalled_for("Forbidden", namespace)["message"]


def test_a_limit_range_that_refuses_is_quoted(namespace: Kubectl) -> None:
    limits = {"limits": [{"type": "Container", "max": {"memory": "16Mi"}}]}
    namespace.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "little"}, "spec": limits})
    job = one_worker("pi")
    container(job["spec"]["mpiReplicaSpecs"]["Worker"])["resources"] = {"limits": {"memory": "1Gi"}}
    namespace.apply(job)
    assert "maximum memory usage per Container is 16Mi" in stalled_for("Forbidden", namespace)["message"]


def test_a_policy_that_denies_is_quoted(namespace: Kubectl, cluster: Kubectl) -> None:
    name, api = f"{namespace.namespace}.example.com", "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.namespace}}}
    deny = {"expression": "false", "message": "no Pods on Fridays"}
    spec = {"matchConstraints": {"resourceRules": [rule], **selector}, "validations": [deny]}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    cluster.apply(
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    )
    try:
        denied = ("run", "probe", "--image=localhost/no-such-image:1", "--dry-run=server")
        wait_until("the policy is in force", lambda: "no Pods on Fridays" in namespace.attempt(*denied).stderr)
        namespace.apply(one_worker("pi"))
        assert "denied request: no Pods on Fridays" in stalled_for("Forbidden", namespace)["message"]
    finally:
        cluster.run("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)
    until_true(namespace, "pi", "Succeeded")


def test_a_lost_key_is_named_and_replaced(namespace: Kubectl) -> None:
    namespace.apply(held(one_worker("pi")))
    until_true(namespace, "pi", "Running")
    namespace.run("delete", "secret", "pi-ssh")
    namespace.run("delete", "configmap", "pi-config")  # without its note the Secret is looked up
    assert "pi-ssh" in stalled_for("SecretLost", namespace)["message"]
    namespace.run("patch", "mpijob", "pi", "--type=merge", '--patch={"spec": {"runPolicy": {"suspend": true}}}')
    until_true(namespace, "pi", "Suspended")
    namespace.run("patch", "mpijob", "pi", "--type=merge", '--patch={"spec": {"runPolicy": {"suspend": false}}}')
    until_true(namespace, "pi", "Running")


@pytest.mark.skipif(IS_CURRENT, reason="no Pod of the user's own cluster is preempted")
def test_a_worker_that_gives_way_to_a_higher_priority_is_named(namespace: Kubectl, cluster: Kubectl) -> None:
    half = f"{600 * int(cluster.run('get', 'nodes', '--output=jsonpath={.items[0].status.allocatable.cpu}'))}m"
    low, high = (f"{namespace.namespace}-{word}"[:63] for word in ("low", "high"))
    job = held(one_worker("pi"))
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    container(worker)["resources"] = {"requests": {"cpu": half}}
    worker["template"]["spec"]["priorityClassName"] = low
    with priorities(cluster, low, high):
        namespace.apply(job)
        until_true(namespace, "pi", "Running")
        important = {"containers": [{**container(worker), "command": ["sleep", "600"]}], "priorityClassName": high}
        namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": important})
        namespace.until(EVENTS, lambda events: "Disrupted" in {e["reason"] for e in events if e["involvedObject"]["kind"] == "MPIJob"})
        [event] = [event for event in namespace.read_all(EVENTS) if event["reason"] == "Disrupted"]
        assert "pod pi-worker-0 is taken from node" in event["message"]
        assert "preempting" in event["message"]
        check_shown_soon("pi", "Disrupted", namespace)
        stalled = stalled_for("Unschedulable", namespace)
        assert "Insufficient cpu" in stalled["message"]
        namespace.run("delete", "pod", "important", "--now")
        namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "Running")


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


@pytest.mark.parametrize(
    ("selected", "reason"),
    [({}, "WriteFailed"), ({"matchLabels": {"training.kubeflow.org/job-role": "launcher"}}, "FailedCreate")],
    ids=["every Pod", "the launcher's Pod"],
)
def test_a_webhook_that_does_not_answer_is_quoted(selected: Obj, reason: str, namespace: Kubectl, cluster: Kubectl) -> None:
    name = f"{namespace.namespace}.example.com"
    webhook = {
        "name": name,
        "clientConfig": {"service": {"namespace": namespace.namespace, "name": "nobody"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.namespace}},
        "objectSelector": selected,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = "ValidatingWebhookConfiguration"
    cluster.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]})
    try:
        namespace.apply(one_worker("pi"))
        assert f'failed calling webhook "{name}"' in stalled_for(reason, namespace)["message"]
    finally:
        cluster.run("delete", kind, name)
    until_true(namespace, "pi", "Succeeded")


def test_a_worker_that_ended_while_it_is_needed_is_named(namespace: Kubectl) -> None:
    namespace.apply(held(one_worker("pi")))
    until_true(namespace, "pi", "Running")
    namespace.attempt("exec", "pi-worker-0", "--", "/bin/sh", "-c", "kill 1")  # the shell may be gone before it can report it
    job = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "WorkerEnded")
    assert "pod pi-worker-0 ended: exit code 0, Completed" in condition(job, "Degraded")["message"]
    check_shown_soon("pi", "WorkerEnded", namespace)
    namespace.run("delete", "pod", "pi-worker-0")
    namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "Running")


@pytest.mark.skipif(IS_CURRENT, reason="a node of the user's own cluster is not stopped")
def test_a_lost_node_is_named(namespace: Kubectl) -> None:
    job = held(one_worker("pi"))
    lost = [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"} for taint in ("not-ready", "unreachable")]
    roles = job["spec"]["mpiReplicaSpecs"]
    roles["Launcher"]["template"]["spec"]["tolerations"] = lost
    roles["Worker"]["template"]["spec"]["tolerations"] = [toleration | {"tolerationSeconds": 1} for toleration in lost]
    namespace.apply(job)
    until_true(namespace, "pi", "Running")
    with paused("kubelet", NAME):
        degraded = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "NodeLost", timeout_seconds=120)
        check_shown_soon("pi", "NodeLost", namespace)
    # Whichever is reported first.
    lost_pod = rf"pod pi-(worker-0|launcher-\w+) cannot be reached, because its node mpiop-{NAME} does not answer"
    assert re.match(lost_pod, condition(degraded, "Degraded")["message"])
    job = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "Running", timeout_seconds=120)
    assert is_true(job, "Running")


def stalled_for(reason: str, here: Kubectl) -> Obj:
    """Return the condition that names why the job `pi` waits, as soon as it has that reason."""
    job = here.until_one(MPIJOBS, "pi", lambda found: state(found) == reason, timeout_seconds=SEEN_SECONDS)
    check_shown_soon("pi", reason, here)
    return waiting_for(job)
