"""Jobs about which the operator should report what it knows, and no more: own ssh, one node's network, gates, a key that ssh refuses."""

from datetime import timedelta
from typing import Any

from e2e.causes import check_shown_soon
from e2e.jobs import condition, is_true, launcher_container, pi_job, state, until_true, warnings_about
from e2e.kubectl import Kubectl, Obj
from mpiop.clock import format_time, parse_time
from mpiop.kube.resources import MPIJOBS, PODS

GATE = "example.com/never"
OWN_SSH = "for n in 0 1; do a=$(getent hosts $NAME-worker-$n.$NAME | cut -d' ' -f1); ssh $a hostname || exit 4; done"


def template_spec(job: Obj, role: str) -> Obj:
    spec: Obj = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    return spec


def as_root(job: Obj, **security: Any) -> Obj:
    """Return the example's job that runs as root, with these fields of the launcher Pod's securityContext."""
    job["spec"].pop("sshAuthMountPath", None)
    for role in ("Launcher", "Worker"):
        container = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]
        container.pop("securityContext", None)
        container.pop("command", None)
        container.pop("args", None)
    launcher_container(job)["command"] = ["mpirun", "--allow-run-as-root", "-n", "1", "/home/mpiuser/pi", "100000"]
    template_spec(job, "Launcher")["securityContext"] = security
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"  # keeps the Pod, and its log
    return job


def own_ssh_job(name: str, *command: str) -> Obj:
    """Return a job whose launcher reaches two workers with its own ssh."""
    job = as_root(pi_job(name, workers=2))
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    container = launcher_container(job)
    container["command"] = [*command]
    container["env"] = [{"name": "NAME", "value": name}, {"name": "PROGRAM", "value": OWN_SSH}]
    return job


def reasons(here: Kubectl, name: str) -> list[str]:
    """Return the reasons of the Warning events of a job."""
    return [event["reason"] for event in warnings_about(here, name)]


def test_a_launcher_with_its_own_ssh_raises_no_alarm(namespace: Kubectl) -> None:
    namespace.apply(own_ssh_job("visible", "bash", "-c", OWN_SSH), own_ssh_job("hidden", "bash", "-c", 'eval "$PROGRAM"'))
    assert not condition(until_true(namespace, "visible", "Succeeded"), "WorkersUnused")
    hidden = namespace.until_one(MPIJOBS, "hidden", lambda job: is_true(job, "Succeeded") and bool(condition(job, "WorkersUnused")))
    assert (condition(hidden, "WorkersUnused")["status"], hidden["status"]["conditions"][-1]["type"]) == ("Unknown", "Succeeded")
    assert 'mpiop.kubeflow.org/ssh-agent: "false"' in condition(hidden, "WorkersUnused")["message"]
    assert {name: reasons(namespace, name) for name in ("visible", "hidden")} == {"visible": [], "hidden": []}


def on_host_network(job: Obj, *roles: str) -> Obj:
    """Return `job` whose Pods of these roles have the network of their node; Open MPI sees whose it is once the names have addresses."""
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    for role in roles:
        template_spec(job, role).update(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    return job


def test_a_launcher_on_the_network_of_its_workers_node_is_explained(namespace: Kubectl) -> None:
    job = on_host_network(as_root(pi_job("both", workers=1)), "Launcher", "Worker")
    namespace.apply(job)
    unused = condition(until_true(namespace, "both", "WorkersUnused"), "WorkersUnused")
    assert "hostNetwork" in unused["message"]
    assert "MPI library" not in unused["message"]
    namespace.run("delete", "mpijob", "both", "--wait=false")
    namespace.until(PODS, lambda pods: not pods)
    # What the message advises.
    job = on_host_network(as_root(pi_job("worker-only", workers=1)), "Worker")
    namespace.apply(job)
    assert not condition(until_true(namespace, "worker-only", "Succeeded"), "WorkersUnused")


def a_minute_after(time: str) -> str:
    return format_time(parse_time(time) + timedelta(seconds=60))


def test_a_gate_that_nothing_removes_is_named(namespace: Kubectl) -> None:
    def gated(name: str, role: str) -> Obj:
        job = as_root(pi_job(name, workers=1))
        template_spec(job, role)["schedulingGates"] = [{"name": GATE}]
        return job

    namespace.apply(gated("worker-gated", "Worker"), gated("launcher-gated", "Launcher"))
    for name in ("worker-gated", "launcher-gated"):
        job = namespace.until_one(MPIJOBS, name, lambda job: state(job) == "SchedulingGated", timeout_seconds=150)
        assert f"has the scheduling gate {GATE}" in job["status"]["summary"]["message"]
        [pod] = [pod for pod in namespace.read_all(PODS) if pod["metadata"]["name"].startswith(name) and pod["spec"].get("schedulingGates")]
        created = pod["metadata"]["creationTimestamp"]
        check_shown_soon(name, "SchedulingGated", namespace, since=a_minute_after(created))
        namespace.run("patch", "pod", pod["metadata"]["name"], "--type=merge", '--patch={"spec": {"schedulingGates": []}}')
        until_true(namespace, name, "Succeeded")


def test_failed_attempts_are_counted_apart_from_restarts(namespace: Kubectl) -> None:
    job = as_root(pi_job("fails", workers=1))
    launcher_container(job)["command"] = ["/bin/sh", "-c", "exit 3"]
    job["spec"]["runPolicy"]["backoffLimit"] = 1
    namespace.apply(job)
    summary = until_true(namespace, "fails", "Failed")["status"]["summary"]
    assert (summary["restarts"], summary["attempts"]) == ("0", "2")
    header, row = namespace.run("get", "mpijobs", "fails", "-o", "wide").splitlines()
    place = header.index("ATTEMPTS")
    assert row[place:].split()[0] == "2"


def test_an_sshd_that_ended_in_a_container_that_continues_is_found_by_a_readiness_probe(namespace: Kubectl) -> None:
    """What docs/images.md advises: without the probe, nothing shows it but the launcher's ssh."""
    job = as_root(pi_job("hidden", workers=1))
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["command"] = ["/bin/sh", "-c", "/usr/sbin/sshd -De -o NoSuchOption=yes; sleep infinity"]
    container["readinessProbe"] = {"tcpSocket": {"port": 22}, "periodSeconds": 2}
    namespace.apply(job)
    found = namespace.until_one(MPIJOBS, "hidden", lambda job: state(job) == "Unhealthy")
    assert "hidden-worker-0" in found["status"]["summary"]["message"]


def test_root_with_an_fs_group_is_warned_before_its_ssh_refuses_the_key(namespace: Kubectl) -> None:
    namespace.apply(as_root(pi_job("group", workers=1), fsGroup=1000), as_root(pi_job("no-group", workers=1)))
    warned = until_true(namespace, "group", "Warnings")
    assert "the launcher's Pod has fsGroup" in condition(warned, "Warnings")["message"]
    until_true(namespace, "group", "Failed")
    [launcher] = [pod["metadata"]["name"] for pod in namespace.read_all(PODS) if pod["metadata"]["name"].startswith("group-launcher")]
    assert "Permissions 0640 for '/root/.ssh/id_rsa' are too open" in namespace.run("logs", launcher)
    assert not condition(until_true(namespace, "no-group", "Succeeded"), "Warnings")
