"""`hack/cluster`: what it makes works, and what it leaves behind is nothing, however it ends."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.waiting import wait_until
from embedded import network
from embedded.build import programs_of
from embedded.images import pause_archive

ROOT = Path(__file__).resolve().parents[2]
DOWN_SECONDS = 20
"""Less than the 30 that Pods are given to end, which `down` does not wait for; on a busy machine it takes more than its usual two."""
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or os.environ.get("MPIOP_CLUSTER") == "current", reason="needs root, and the embedded cluster"
)


@dataclass(frozen=True)
class Command:
    """`hack/cluster` for one cluster with a state folder of its own."""

    name: str
    state: Path

    @property
    def folder(self) -> Path:
        return self.state / self.name

    def start(self, verb: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "hack" / "cluster"), verb, "--name", self.name, *arguments]
        environment = {**os.environ, "MPIOP_STATE": str(self.state)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, verb: str, *arguments: str, expect: int = 0) -> str:
        process = self.start(verb, *arguments)
        output, errors = process.communicate(timeout=1200)
        assert process.returncode == expect, f"{verb} {arguments}: {process.returncode}\n{output}{errors}"
        return output + errors

    def status(self) -> dict[str, object]:
        process = self.start("status", "--json")
        state: dict[str, object] = json.loads(process.communicate(timeout=60)[0])
        return state

    def pids(self) -> dict[str, int]:
        components = self.status()["components"]
        assert isinstance(components, list)
        return {component["name"]: component["pid"] for component in components if component["pid"]}

    def try_kubectl(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "bin" / "kubectl"), f"--kubeconfig={self.folder / 'kubeconfig'}", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, input=given, timeout=120)

    def kubectl(self, *arguments: str, given: str = "") -> str:
        result = self.try_kubectl(*arguments, given=given)
        assert result.returncode == 0, f"kubectl {arguments}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout


def traces(command: Command) -> list[str]:
    """Return everything on this machine that belongs to the cluster, found without asking `hack/cluster`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            text = (entry / "cmdline").read_text() + (entry / "cgroup").read_text() if entry.name.isdigit() else ""
            if text and (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue  # it has ended; that its parent, the machine's init, has not asked yet is not ours to change
        except OSError:
            continue
        if str(command.folder) in text or f"/mpiop-{command.name}-" in text:
            found.append(f"process {entry.name}: {text[:200]}")
    links = json.loads(subprocess.run(["ip", "-json", "link"], check=True, capture_output=True, text=True).stdout)
    found += [f"interface {link['ifname']}" for link in links if str(command.folder) in link.get("ifalias", "")]
    found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(command.folder) in line]
    groups = (folder for folder, *_ in os.walk("/sys/fs/cgroup"))  # unlike glob, it skips a folder that somebody removes meanwhile
    found += [f"control group {folder}" for folder in groups if Path(folder).name.startswith(f"mpiop-{command.name}-")]
    return found + [str(entry) for entry in command.state.glob("*") if entry != command.state / f"{command.name}.lock"]


@pytest.fixture
def command(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Command]:
    """A cluster that is not up, with a state folder too deep for a socket's address."""
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    one = Command(f"t{os.getpid()}-{abs(hash(request.node.name)) % 10000}", deep)
    yield one
    one.run("down")
    assert traces(one) == []


def test_control_plane_alone_comes_up_answers_and_goes_without_a_trace(command: Command) -> None:
    command.run("build", "kubernetes", "etcd")  # so that the times below are those of a warm cache
    output = command.run("up", "--control-plane-only")
    assert "is up after" in output
    assert command.kubectl("get", "--raw=/readyz") == "ok"
    assert command.kubectl("get", "serviceaccount", "default", "-o", "name") == "serviceaccount/default\n"
    assert set(command.pids()) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
    assert traces(command) != []

    before = command.pids()
    command.run("up", "--control-plane-only")
    assert command.pids() == before, "a second up starts nothing anew"
    refusal = command.run("up", expect=1)
    assert "up with other options; run first: hack/cluster down" in refusal

    began = time.monotonic()
    command.run("down")
    assert time.monotonic() - began < DOWN_SECONDS
    assert traces(command) == []
    assert "There is no cluster" in command.run("down")


def test_env_leads_kubectl_to_the_cluster(command: Command) -> None:
    command.run("up", "--control-plane-only")
    script = 'eval "$("$0" "$1" env --name "$2")" && command -v kubectl && kubectl config current-context'
    arguments = ["bash", "-c", script, sys.executable, str(ROOT / "hack" / "cluster"), command.name]
    environment = {**os.environ, "MPIOP_STATE": str(command.state)}
    result = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
    assert result.stdout.split() == [str(command.folder / "bin" / "kubectl"), f"mpiop-{command.name}"]


def test_kill_9_of_the_first_process_takes_all_along_and_up_makes_a_new_cluster(command: Command) -> None:
    command.run("up", "--control-plane-only")
    command.kubectl("create", "namespace", "of-the-first")
    pids = command.pids()
    os.kill(json.loads((command.folder / "supervisor.json").read_text())["pid"], signal.SIGKILL)
    wait_until("the components ended", lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids.values()), timeout_seconds=10)
    assert str(command.status()["state"]).startswith("crashed")
    assert "Cleaning up what an earlier cluster" in command.run("up", "--control-plane-only")
    assert "of-the-first" not in command.kubectl("get", "namespaces")


def test_a_killed_component_is_reported_and_started_again(command: Command) -> None:
    command.run("up", "--control-plane-only")
    command.kubectl("create", "namespace", "survives")
    pids = command.pids()
    for name, pid in pids.items():
        os.kill(pid, signal.SIGKILL)
        wait_until(f"{name} is reported as ended", lambda name=name: name not in command.pids(), timeout_seconds=10)  # type: ignore[misc]
    assert "ended with -9" in command.run("status", expect=1)
    command.run("up", "--control-plane-only")
    assert set(command.pids()) == set(pids)
    assert not set(command.pids().values()) & set(pids.values())
    assert "survives" in command.kubectl("get", "namespaces")


def test_outages_on_demand(command: Command) -> None:
    command.run("up", "--control-plane-only")
    first = command.pids()["kube-scheduler"]
    command.run("restart", "kube-scheduler")
    assert command.pids()["kube-scheduler"] != first
    command.run("stop", "--kill", "kube-apiserver")
    assert "kube-apiserver" not in command.pids()
    command.run("start", "kube-apiserver")
    assert command.kubectl("get", "--raw=/readyz") == "ok"
    command.run("pause", "etcd")
    state = Path(f"/proc/{command.pids()['etcd']}/stat")
    wait_until("etcd is stopped", lambda: state.read_text().split()[2] == "T", timeout_seconds=5)
    command.run("resume", "etcd")
    command.kubectl("create", "namespace", "after-the-pause")
    assert "no component 'etc'" in command.run("restart", "etc", expect=1)
    assert command.run("logs", "kube-scheduler").strip()


# Moments of `up`, by what has just come into being.
MOMENTS = {
    "the state folder": "",
    "the first process": "supervisor.json",
    "the record": "cluster.json",
    "the database": "logs/etcd.log",
    "the controllers": "logs/kube-scheduler.log",
}


@pytest.mark.parametrize(
    ("number", "moment"),
    [*((number, moment) for number in (signal.SIGKILL, signal.SIGINT) for moment in MOMENTS), (signal.SIGTERM, "the database")],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else value,
)
def test_up_may_be_ended_at_any_moment(command: Command, number: signal.Signals, moment: str) -> None:
    process = command.start("up", "--control-plane-only")
    file = command.folder / MOMENTS[moment]
    wait_until(moment, lambda: file.exists() or process.poll() is not None, timeout_seconds=600, look_seconds=0.02)
    os.kill(process.pid, number)
    output, errors = process.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert process.returncode == 130, output + errors
        assert traces(command) == []
    command.run("down")
    assert traces(command) == []


def test_a_link_whose_up_was_killed_before_it_had_a_mark_goes_with_the_cluster() -> None:
    name = f"mpiop-t{os.getpid()}"
    own = Path("/proc/self/ns/net").readlink()
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as process:
        wait_until("a namespace", lambda: Path(f"/proc/{process.pid}/ns/net").readlink() != own, timeout_seconds=10)
        assert network._add_pair(name, process.pid)
        assert Path("/sys/class/net", name).exists()
        process.kill()
    wait_until("the kernel removed the link", lambda: not Path("/sys/class/net", name).exists(), timeout_seconds=10)


def test_up_after_an_up_that_was_killed(command: Command) -> None:
    process = command.start("up", "--control-plane-only")
    wait_until("the API server", (command.folder / "logs" / "kube-apiserver.log").exists, timeout_seconds=600, look_seconds=0.02)
    process.kill()
    process.communicate(timeout=30)
    command.run("up", "--control-plane-only")
    assert command.status()["state"] == "up"


def test_clusters_side_by_side(command: Command) -> None:
    other = Command(f"{command.name}-b", command.state)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Command.run, (command, other), ("up", "up"), ("--control-plane-only",) * 2))
        assert command.status()["server"] != other.status()["server"]
        command.kubectl("create", "namespace", "only-here")
        assert "only-here" not in other.kubectl("get", "namespaces")
    finally:
        other.run("down")
    assert command.kubectl("get", "--raw=/readyz") == "ok"
    (command.state / f"{other.name}.lock").unlink()


def test_the_state_folder_may_lie_where_the_cluster_has_folders_of_its_own() -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="mpiop-test-") as folder:
        one = Command(f"t{os.getpid()}-varlib", Path(folder))
        try:
            one.run("up", "--control-plane-only")
            assert one.kubectl("get", "--raw=/readyz") == "ok"
        finally:
            one.run("down")
        assert traces(one) == []


def test_options_reach_the_components(command: Command) -> None:
    gates, versions = "MutatingAdmissionPolicy=true", "admissionregistration.k8s.io/v1beta1=true"
    command.run("up", "--control-plane-only", "--feature-gates", gates, "--runtime-config", versions, "--audit")
    assert "admissionregistration.k8s.io/v1beta1\n" in command.kubectl("api-versions")
    assert 'kubernetes_feature_enabled{name="MutatingAdmissionPolicy"' in command.kubectl("get", "--raw=/metrics")
    command.kubectl("create", "namespace", "audited")
    audited = command.folder / "logs" / "audit.log"
    wait_until(
        "an audit event",
        lambda: any('"verb":"create"' in line and '"audited"' in line for line in audited.read_text().splitlines()),
        timeout_seconds=40,
    )


PROBES = """
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: probe}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: probe}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  serviceName: probe
  selector: {matchLabels: {app: probe}}
  template:
    metadata: {labels: {app: probe}}
    spec:
      containers:
        - name: probe
          image: mpiop.invalid/probe:dev
          imagePullPolicy: Never
          args: [serve]
          readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
"""
OTHERS = """
apiVersion: v1
kind: Service
metadata: {name: probe}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: probe}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: simulated}
spec:
  template:
    metadata: {annotations: {mpiop.test/complete-after: 1s}}
    spec:
      restartPolicy: Never
      nodeSelector: {type: kwok}
      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}]
      containers: [{name: main, image: none}]
"""


def answer_to_the_api_server(command: Command, service: str) -> str:
    """Return what `service` answers to a program where the API server runs."""
    address = command.kubectl("get", "service", service, "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
    asking = f"import urllib.request; print(urllib.request.urlopen('http://{address}').read().decode())"
    return command.run("exec", "--", sys.executable, "-c", asking).strip()


def test_pods_run_find_and_reach_each_other_beside_simulated_ones(command: Command) -> None:
    command.run("build", "kubernetes", "etcd", "containerd", "coredns", "pause", "kwok", "probe")
    output = command.run("up", "--kwok", "2")
    seconds = float(output.rpartition("is up after ")[2].split()[0])
    assert seconds < 25, output
    archive = command.state / "probe.tar"
    program = Path(programs_of(("probe",))["probe"]).read_bytes()
    archive.write_bytes(pause_archive(program, "mpiop.invalid/probe:dev", os.uname().machine))
    assert command.run("load-image", str(archive)) == "mpiop.invalid/probe:dev\n"
    archive.unlink()

    command.kubectl("apply", "-f", "-", given=f"{PROBES}---{OTHERS}")
    command.kubectl("rollout", "status", "statefulset/probe", "--timeout=60s")
    command.kubectl("wait", "--for=condition=Complete", "job/simulated", "--timeout=60s")
    inside = ("exec", "probe-0", "--", "/pause")
    assert command.kubectl(*inside, "get", "http://probe-1.probe.default.svc.cluster.local:8080") == "probe-1\n"
    assert command.kubectl(*inside, "get", "http://front").strip() in {"probe-0", "probe-1"}
    assert command.kubectl(*inside, "lookup", "kubernetes.default").strip()
    assert command.kubectl("logs", "probe-0") == "serving as probe-0\n"
    assert answer_to_the_api_server(command, "front") in {"probe-0", "probe-1"}, "it calls webhooks so"
    nodes = command.kubectl("get", "pods", "-l", "app=probe", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert set(nodes) == {f"mpiop-{command.name}"}, "no real pod on a simulated node"

    command.run("restart", "containerd", "--kill")
    command.run("restart", "kubelet", "--kill")
    again = (*inside, "get", "http://probe-1.probe:8080")
    wait_until("the new kubelet knows the old pods", lambda: command.try_kubectl(*again).stdout == "probe-1\n", timeout_seconds=30)
    restarts = command.kubectl("get", "pods", "-l", "app=probe", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
    assert restarts == "0 0", "containers survive their runtime"
    began = time.monotonic()
    command.run("down")
    assert time.monotonic() - began < DOWN_SECONDS
    assert traces(command) == []
