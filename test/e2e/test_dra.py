"""The job of DraNet's document with a real DRA driver: each worker gets a claim and a device of its own, and they go with its Pod."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.clusters import ROOT, load_archives, operator_cluster, output_shown
from e2e.conftest import NAME, new_namespace
from e2e.jobs import LAUNCHER, WORKER, launcher_container, until_true, until_waiting
from e2e.kubectl import Kubectl, Obj
from e2e.neighbours import load_program
from e2e.operator_pods import Operator
from e2e.shell import Shell, open_shell
from e2e.stand_ins import PI_IMAGE, image_with
from mpiop.kube.resources import PODS, Resource

CLUSTER = f"{NAME}-dra"
DRIVER, DRIVER_IMAGE = "gpu.example.com", "mpiop.invalid/dra-example-driver:stand-in"
EXAMPLE = ROOT / "examples" / "dra" / "dranet.yaml"
JOB = "nccl-test-dranet-1gpu-1nic"
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
FOLDERS = {"plugins": "/var/lib/kubelet/plugins", "registry": "/var/lib/kubelet/plugins_registry", "cdi": "/var/run/cdi"}


def driver(node: str) -> list[Obj]:
    """Return the driver's kubelet plugin as a Pod; its own chart would need Helm."""
    container = {
        "name": "driver",
        "image": DRIVER_IMAGE,
        "args": [f"--node-name={node}", "--cdi-root=/var/run/cdi", "--num-devices=2"],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in FOLDERS.items()],
    }
    volumes = [{"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in FOLDERS.items()]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "driver"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "e2e-dra-driver"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": "kube-system"}],
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "dra-example-driver"},
            "spec": {"serviceAccountName": "driver", "containers": [container], "volumes": volumes},
        },
    ]


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl on a cluster with the operator and a node of two devices and two GPUs."""
    folder = tmp_path_factory.mktemp("dra")
    # The driver's release that can be had speaks v1beta1, which is off by default.
    options = ("--runtime-config", "resource.k8s.io/v1beta1=true")
    with operator_cluster(CLUSTER, request, *options) as cluster:
        load_archives(CLUSTER, all_reduce_image(folder))
        with output_shown(request):
            load_program(CLUSTER, "dra-example-driver", "/usr/bin/dra-example-kubeletplugin", DRIVER_IMAGE, folder / "driver.tar")
        Operator(cluster.within("mpi-operator")).wait_until_ready()
        [node] = cluster.run("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()
        cluster.within("kube-system").apply(*driver(node))
        gpus = json.dumps({"status": {"capacity": {"nvidia.com/gpu": "2"}}})
        cluster.run("patch", "node", node, "--subresource=status", "--type=merge", "--patch", gpus)
        cluster.until(SLICES, lambda slices: [len(each["spec"]["devices"]) for each in slices] == [2])
        yield cluster


def all_reduce_image(folder: Path) -> Path:
    """Make the image that the document names, with a script in place of the benchmark."""
    program = (Path(__file__).parent / "stand_in_programs" / "all_reduce_perf.sh").read_bytes()
    [job] = [each for each in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")) if each["kind"] == "MPIJob"]
    files = {"/third_party/nccl-tests/build/all_reduce_perf": (program, 0o755)}
    return image_with(files, launcher_container(job)["image"], folder / "all-reduce.tar", base=PI_IMAGE)


@pytest.fixture(scope="module")
def shell(devices: Kubectl, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[tuple[Kubectl, Shell]]:
    """The shell of who follows docs/dra.md, where the example speaks of the driver that is there."""
    checkout = tmp_path_factory.mktemp("dranet")
    objects = [each for each in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")) if each]
    device_class, template, _ = objects
    device_class["spec"]["selectors"] = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    del template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    del template["spec"]["spec"]["devices"]["config"]
    copy = checkout / EXAMPLE.relative_to(ROOT)
    copy.parent.mkdir(parents=True)
    copy.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    with new_namespace(devices, "dra", request.session) as here:
        yield here, open_shell(here, checkout, checkout / "kubeconfig")


def test_each_worker_gets_a_claim_of_its_own_which_goes_with_its_pod(shell: tuple[Kubectl, Shell]) -> None:
    here, reader = shell
    reader.follow("docs/dra.md", "The job")
    until_true(here, JOB, "Succeeded")
    workers = {pod["metadata"]["uid"]: pod for pod in here.read_all(PODS, WORKER)}
    assert len(workers) == 2
    claims = here.read_all(CLAIMS)
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in claims} == set(workers)
    allocated = [result["device"] for each in claims for result in each["status"]["allocation"]["devices"]["results"]]
    assert sorted(set(allocated)) == sorted(allocated)
    assert len(allocated) == 2
    [launcher] = here.read_all(PODS, LAUNCHER)
    assert "resourceClaims" not in launcher["spec"]
    log = here.run("logs", launcher["metadata"]["name"])
    for index in range(2):
        assert f"Rank {index} of 2 on {JOB}-worker-{index} " in log, log
    assert log.count("socket interface dranet0 arguments: -b 8K -e 128M -g 1") == 2, log
    assert "worker-rdma-nic" in reader.follow("docs/dra.md", "Which worker has which device")
    here.run("delete", "mpijob", JOB)
    here.until(CLAIMS, lambda claims: not claims)
    here.until(PODS, lambda left: not left)


def test_a_worker_without_a_device_waits_and_the_job_says_so(shell: tuple[Kubectl, Shell]) -> None:
    here, reader = shell
    text = (reader.folder / "examples/dra/dranet.yaml").read_text(encoding="utf-8")
    objects = list(yaml.safe_load_all(text))
    job = objects[-1]
    job["metadata"]["name"] = "too-many"
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3
    for spec in job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]:
        spec["resources"].pop("limits")
    here.apply(*objects[1:])
    assert until_waiting(here, "too-many")["reason"] == "Unschedulable"
    here.run("delete", "mpijob", "too-many")
