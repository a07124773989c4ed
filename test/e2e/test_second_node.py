"""`hack/cluster up --nodes 2`: Pods of both nodes reach each other, and the second node can be cut off, switched off and had again."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from e2e.test_cluster import PROBES, Command, traces
from e2e.waiting import wait_until
from embedded.build import programs_of
from embedded.images import pause_archive

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or os.environ.get("MPIOP_CLUSTER") == "current", reason="needs root, and the embedded cluster"
)
OF_SECOND = {"node-2", "containerd-2", "kubelet-2", "kube-proxy-2"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "probe"}},
}


def pods_on_both_nodes() -> str:
    """Return the Service and the probes of `test_cluster`, one on each node."""
    front, probe = yaml.safe_load_all(PROBES)
    probe["spec"]["template"]["spec"]["topologySpreadConstraints"] = [SPREAD]
    return yaml.safe_dump_all([front, probe])


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A cluster of two nodes with the image of the probe."""
    one = Command(f"t{os.getpid()}-two", tmp_path_factory.mktemp("state"))
    one.run("build", "kubernetes", "etcd", "containerd", "coredns", "pause", "probe")
    archive = one.state / "probe.tar"
    archive.write_bytes(pause_archive(Path(programs_of(("probe",))["probe"]).read_bytes(), "mpiop.invalid/probe:dev", os.uname().machine))
    try:
        one.run("up", "--nodes", "2")
        one.run("load-image", str(archive))
        yield one
    finally:
        archive.unlink()
        one.run("down")
    assert traces(one) == []


@pytest.fixture(scope="module")
def pods(command: Command) -> Mapping[str, str]:
    """The address of the Pod of each node."""
    command.kubectl("apply", "-f", "-", given=pods_on_both_nodes())
    command.kubectl("rollout", "status", "statefulset/probe", "--timeout=60s")
    form = r'jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name} {.status.podIP}{"\n"}{end}'
    rows = sorted(line.split() for line in command.kubectl("get", "pods", "-o", form).splitlines())
    assert [node for node, _, _ in rows] == [f"mpiop-{command.name}", f"mpiop-{command.name}-2"]
    return {name: address for _, name, address in rows}


def is_reached(command: Command, pod: str, address: str) -> bool:
    """Return whether `address` answers to a program in `pod`."""
    return command.try_kubectl("exec", pod, "--", "/pause", "get", f"http://{address}:8080").returncode == 0


def test_pods_of_both_nodes_are_there_for_each_other(command: Command, pods: Mapping[str, str]) -> None:
    first, second = pods
    assert is_reached(command, first, pods[second])
    assert is_reached(command, second, pods[first])
    for pod in pods:
        answers = {command.kubectl("exec", pod, "--", "/pause", "get", "http://front").strip() for _ in range(20)}
        assert answers == set(pods), f"{pod}: a Service leads to both"
        assert command.kubectl("exec", pod, "--", "/pause", "lookup", "kubernetes.default").strip()
        assert command.kubectl("logs", pod) == f"serving as {pod}\n"


def test_the_second_node_is_cut_off_and_joined(command: Command, pods: Mapping[str, str]) -> None:
    first, second = pods
    link = ("exec", "--network-only", "--", "ip", "link", "set", "node-2")
    command.run(*link, "down")
    assert not is_reached(command, first, pods[second])
    assert command.run("status", expect=1).count("not well") == len(OF_SECOND) - 2, "its kubelet and its proxy do not answer"
    command.run(*link, "up")
    wait_until("the second node is reached again", lambda: is_reached(command, first, pods[second]), timeout_seconds=30)


def test_the_second_node_is_switched_off_and_on(command: Command, pods: Mapping[str, str]) -> None:
    first, second = pods
    before = command.pids()
    command.run("stop", "node-2")
    assert command.pids() == {name: pid for name, pid in before.items() if name not in OF_SECOND}
    groups = Path("/sys/fs/cgroup").glob(f"**/mpiop-{command.name}-*/node-2/**/cgroup.procs")
    assert [text for file in groups if (text := file.read_text())] == [], "no container is left of it"
    command.run("start", "node-2")
    assert set(command.pids()) == set(before)
    form = ("get", "pod", second, "-o", "jsonpath={.status.podIP}")
    wait_until("the second node runs its Pod again", lambda: is_reached(command, first, command.kubectl(*form)), timeout_seconds=60)
