"""Every command that the public documents about MPIJobs show, as their readers type it, and the output that they show.

Image names and namespaces aside. `make images` and the kustomizations are in test_manifests.py as well, the join of metrics in
test_monitoring.py, DraNet's job with a driver in test_dra.py, gangs in test_gang.py, Intel MPI running in test_mpi.py.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e.clusters import IS_CURRENT, ROOT, load_archives
from e2e.conftest import NAME
from e2e.jobs import LAUNCHER, WORKER, held, launcher_container, launcher_pod, let_run, pi_job, until_true, with_script
from e2e.kubectl import DEPLOYMENTS, NAMESPACES, Kubectl, Obj
from e2e.operator_pods import Operator
from e2e.shell import Shell, blocks_below, open_shell
from e2e.stand_ins import PI_IMAGE, advertised, image_with
from mpiop.kube.resources import JOBS, PODS
from website.staging import pages

PROGRAMS = Path(__file__).parent / "stand_in_programs"
BENCHMARK_IMAGE = "mpioperator/tensorflow-benchmarks:latest"
STAND_IN_IMAGE = "mpiop.invalid/tensorflow-benchmarks:stand-in"  # `latest` would be pulled, whatever is on the node
ONE = "examples/v2beta1/tensorflow-benchmarks.yaml"
OTHER = "examples/v2beta1/tensorflow-benchmarks/tensorflow-benchmarks.yaml"
JOB = "tensorflow-benchmarks"
NOT_RUN = {
    ("CONTRIBUTING.md", "Contributing"): "these are all tests",
    ("README.md", "mpiop"): "the tests themselves, and the demo, which makes a cluster",
    ("README.md", "Install it and run a first job"): "needs a registry; test_release.py, test_helm.py and test_kubectl_mpi.py do the same",
    ("docs/air-gap.md", "Build a release"): "test_release.py makes one, with a registry and a key",
    ("docs/air-gap.md", "From a machine that reaches both"): "needs a registry; test_release.py pushes the images of a release",
    ("docs/cluster.md", "The embedded cluster"): "the fixtures of these tests run the same",
    ("docs/examples.md", "From a manifest"): "test_examples.py does the same",
    ("docs/examples.md", "GPUs"): "needs GPUs; test_manifests.py checks the manifests",
    ("docs/examples.md", "HPL and STREAM"): "test_applications.py runs it by its heading",
    ("docs/examples.md", "LAMMPS"): "test_applications.py runs it by its heading",
    ("docs/examples.md", "PyTorch"): "test_applications.py runs it by its heading",
    ("docs/examples.md", "Dask"): "test_applications.py runs it by its heading",
    ("docs/fault-tolerance.md", "Pods that stay Terminating"): "one of them is right for a Pod; test_restarts.py has such Pods",
    ("docs/faults.md", "Faults"): "these are all tests",
    ("docs/gang-scheduling.md", "Kubernetes' own gangs"): "test_gang.py makes a cluster with the same gates",
    ("docs/images.md", "How to build them"): "builds all images, and removes them; test_manifests.py has one of the commands",
    ("docs/kubectl-mpi.md", "Nodes"): "its nodes have GPUs; docs/slurm.md shows the node of the tests",
    ("docs/performance.md", "Performance"): "takes hours",
    ("docs/python-client.md", "Python client"): "needs a package index",
    ("docs/reference/causes.md", "As users see it"): "a moment of jobs that change; test_causes.py has each row",
    ("docs/releasing.md", "Check a release"): "needs a signer; test_release.py does the same",
    ("docs/releasing.md", "Check an image"): "needs a registry; test_release.py does the same",
}
"""Commands that no test runs, by page and heading, and why."""


def headings_with_commands(page: str) -> set[str]:
    """Return the headings of a page that have commands, transcripts or programs directly below them."""
    return {heading for language in ("shell", "console", "python") for heading in blocks_below(page, language)}


PAGES = [str(page) for page in pages() if headings_with_commands(str(page))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose TensorFlow image is the one that stands in for it."""
    copy = tmp_path_factory.mktemp("documents") / "mpi-operator"
    copy.mkdir()
    for name in ("deploy", "examples", "manifests"):
        shutil.copytree(ROOT / name, copy / name)
    for name in (ONE, OTHER):
        text = (copy / name).read_text(encoding="utf-8")
        (copy / name).write_text(text.replace(BENCHMARK_IMAGE, STAND_IN_IMAGE), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def stand_in(cluster: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> None:
    """TensorFlow's benchmark, or what prints the same lines, on the node."""
    assert cluster
    if IS_CURRENT:
        pytest.skip("the user's own cluster has no image that stands in for TensorFlow's")
    script = (PROGRAMS / "tf_cnn_benchmarks.sh").read_bytes()
    files = {
        "/usr/local/bin/python": (b'#!/bin/sh\nexec /bin/sh "$@"\n', 0o755),
        "/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py": (script, 0o755),
    }
    archive = tmp_path_factory.mktemp("images") / "tensorflow.tar"
    image_with(files, STAND_IN_IMAGE, archive, base=PI_IMAGE, settings={"WorkingDir": "/"})
    load_archives(NAME, archive)


@pytest.fixture(scope="module")
def reader(module_namespace: Kubectl, folder: Path) -> Shell:
    """The shell of who reads the documents."""
    return open_shell(module_namespace, folder, folder.parent / "kubeconfig")


@pytest.fixture(scope="module")
def gpus(cluster: Kubectl) -> Iterator[None]:
    """A node that advertises two GPUs."""
    with advertised(cluster, "nvidia.com/gpu", 2):
        yield


@dataclass(frozen=True)
class Benchmark:
    """TensorFlow's job after its end, and the Pods that it had."""

    here: Kubectl
    job: Obj
    workers: list[Obj]


@pytest.fixture(scope="module")
def benchmark(module_namespace: Kubectl, reader: Shell, stand_in: None, gpus: None) -> Benchmark:
    """Run the example as the documents do."""
    assert (stand_in, gpus) == (None, None)
    assert reader.run(f"kubectl apply -f {ONE}") == f"mpijob.kubeflow.org/{JOB} created\n"
    workers = module_namespace.until(PODS, lambda pods: len(pods) == 1, labels=WORKER)
    return Benchmark(module_namespace, until_true(module_namespace, JOB, "Succeeded"), workers)


# Installation


def test_get_crd_shows_the_resource(reader: Shell) -> None:
    header, *rows = reader.run("kubectl get crd").splitlines()
    assert header.split()[0] == "NAME"
    assert "mpijobs.kubeflow.org" in {row.split()[0] for row in rows}


def test_applying_the_deploy_manifest_again_changes_nothing(reader: Shell, operator: Operator) -> None:
    before = operator.kubectl.read(DEPLOYMENTS, "mpi-operator")["metadata"]["generation"]
    lines = reader.run("kubectl apply -f deploy/v2beta1/mpi-operator.yaml").splitlines()
    assert not [line for line in lines if not line.endswith((" unchanged", " configured"))]
    assert operator.kubectl.read(DEPLOYMENTS, "mpi-operator")["metadata"]["generation"] == before


KUBEFLOW = {
    "kubectl's own kustomize": "kubectl apply -k manifests/overlays/kubeflow",
    "the pipe": "kubectl kustomize manifests/overlays/kubeflow | kubectl apply -f -",
}


@pytest.mark.parametrize("command", KUBEFLOW.values(), ids=KUBEFLOW)
def test_kubeflows_overlay_lives_in_its_namespace_and_leaves_it_there(command: str, empty: Kubectl, folder: Path) -> None:
    shell = open_shell(empty.within("default"), folder, folder.parent / "kubeflow")
    shell.run("kubectl create namespace kubeflow")
    shell.run("kubectl create configmap of-somebody-else --namespace=kubeflow")
    shell.run(command)
    assert "mpijobs.kubeflow.org" in shell.run("kubectl get crd")
    assert empty.within("kubeflow").read(DEPLOYMENTS, "mpi-operator")
    shell.run("kubectl delete -k manifests/overlays/kubeflow")
    assert "mpijobs.kubeflow.org" not in shell.run("kubectl get crd")
    assert "of-somebody-else" in shell.run("kubectl get configmaps --namespace=kubeflow")
    shell.run("kubectl delete namespace kubeflow --wait=false")
    empty.until_gone(NAMESPACES, "kubeflow")


def test_kustomize_base_installs_it_from_the_folder_manifests(empty: Kubectl, folder: Path) -> None:
    shell = open_shell(empty.within("default"), folder / "manifests", folder.parent / "base")
    assert "deployment.apps/mpi-operator created" in shell.run("kubectl kustomize base | kubectl apply -f -").splitlines()
    assert "mpijobs.kubeflow.org" in shell.run("kubectl get crd")


def test_the_guide_installs_and_removes_it(empty: Kubectl, folder: Path) -> None:
    shell = open_shell(empty.within("default"), folder, folder.parent / "install")
    assert "mpijobs.kubeflow.org" in shell.follow("docs/install.md", "On its own")
    assert empty.within("mpi-operator").read(DEPLOYMENTS, "mpi-operator")
    shell.follow("docs/install.md", "As a part of Kubeflow")
    assert empty.within("kubeflow").read(DEPLOYMENTS, "mpi-operator")
    shell.follow("docs/install.md", "Removing")
    assert "mpijobs.kubeflow.org" not in shell.run("kubectl get crd")
    shell.run("kubectl delete namespace kubeflow --wait=false")


def test_the_guide_makes_an_operator_for_one_namespace(empty: Kubectl, folder: Path) -> None:
    shard = folder / "shards" / "b"
    shard.mkdir(parents=True)
    text = blocks_below("docs/sharding.md", "yaml")["Operators for some namespaces"]
    (shard / "kustomization.yaml").write_text(text, encoding="utf-8")
    shell = open_shell(empty.within("default"), folder, folder.parent / "sharding")
    shell.run("kubectl create namespace team-b")
    shell.follow("docs/sharding.md", "Operators for some namespaces")
    [container] = empty.within("mpi-operator-b").read(DEPLOYMENTS, "mpi-operator")["spec"]["template"]["spec"]["containers"]
    assert "--namespace=team-b" in container["args"]
    everywhere = json.loads(shell.run("kubectl get clusterrolebindings -o json"))["items"]
    assert not [each for each in everywhere for account in each.get("subjects", ()) if account.get("namespace") == "mpi-operator-b"]


def test_the_guide_shows_whether_the_operator_is_well(reader: Shell, operator: Operator) -> None:
    shown = reader.follow("docs/install.md", "Verify the installation")
    assert "successfully rolled out" in shown
    assert operator.until_led() in shown


# A job


def test_the_examples_page_runs_its_job(namespace: Kubectl, tmp_path: Path) -> None:
    shell = open_shell(namespace, ROOT, tmp_path / "kubeconfig")
    assert "pi is approximately 3.14" in shell.follow("examples/v2beta1/pi/README.md", "π", timeout_seconds=330)


def test_the_workers_have_the_gpus_and_the_launcher_has_none(benchmark: Benchmark) -> None:
    assert [pod["spec"]["containers"][0]["resources"]["limits"] for pod in benchmark.workers] == [{"nvidia.com/gpu": "2"}]
    [launcher] = benchmark.here.read_all(PODS, LAUNCHER)
    assert "nvidia.com/gpu" not in json.dumps([each.get("resources") for each in launcher["spec"]["containers"]])


def test_get_yaml_shows_what_the_sample_shows(benchmark: Benchmark, reader: Shell) -> None:
    shown = yaml.safe_load(reader.run(f"kubectl get -o yaml mpijobs {JOB}"))
    written = yaml.safe_load((ROOT / ONE).read_text(encoding="utf-8").replace(BENCHMARK_IMAGE, STAND_IN_IMAGE))
    assert is_within(written["spec"], shown["spec"])
    assert shown["metadata"]["generation"] == 1
    status = shown["status"]
    job = f"MPIJob {benchmark.here.namespace}/{JOB}"
    assert [
        (c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"] if c["type"] not in {"Stalled", "Finished"}
    ] == [
        ("Created", "True", "MPIJobCreated", f"{job} is created."),
        ("Running", "False", "MPIJobRunning", f"{job} is running."),
        ("Succeeded", "True", "MPIJobSucceeded", f"{job} successfully completed."),
    ]
    assert status["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
    assert status["startTime"] <= status["completionTime"]
    for condition in status["conditions"]:
        assert condition["lastTransitionTime"] <= condition["lastUpdateTime"] <= status["completionTime"] or condition["type"] in {
            "Finished",
            "Succeeded",
        }


def is_within(desired: object, found: object) -> bool:
    """Return whether `found` has all that `desired` has, in lists item by item."""
    if isinstance(desired, dict) and isinstance(found, dict):
        return all(name in found and is_within(value, found[name]) for name, value in desired.items())
    if isinstance(desired, list) and isinstance(found, list):
        return len(desired) == len(found) and all(map(is_within, desired, found))
    return str(desired) == str(found)


def test_the_launchers_log_is_found_by_the_older_labels(benchmark: Benchmark, reader: Shell) -> None:
    assert benchmark.job
    log = reader.run(f"PODNAME=$(kubectl get pods -l mpi_job_name={JOB},mpi_role_type=launcher -o name)\nkubectl logs -f ${{PODNAME}}")
    assert "Model:       resnet101" in log
    assert "Batch size:  128 global" in log
    assert "Devices:     ['horovod/gpu:0', 'horovod/gpu:1']" in log
    assert len(re.findall(r"^100\timages/sec: [\d.]+ \+/- ", log, re.MULTILINE)) == 2, "one line of each rank"
    assert "total images/sec: " in log


def test_the_launchers_log_is_found_by_the_newer_labels(benchmark: Benchmark, reader: Shell) -> None:
    assert benchmark.job
    selector = f"training.kubeflow.org/job-name={JOB},training.kubeflow.org/job-role=launcher"
    assert "total images/sec: " in reader.run(f"kubectl logs -f $(kubectl get pods -l {selector} -o name)")


def test_the_running_workers_are_cleaned_up_at_the_end(benchmark: Benchmark) -> None:
    benchmark.here.until(PODS, lambda pods: not pods, labels=WORKER)


def test_after_a_retry_the_newest_launchers_log_is_found(namespace: Kubectl, folder: Path, tmp_path: Path) -> None:
    job = pi_job("pi", workers=1)
    launcher_container(job)["args"] = ["-n", "1", "/home/mpiuser/pi"]
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    namespace.apply(with_script(job, '/etc/mpi-hosts/ssh pi-worker-0.pi "test -e once || { touch once; exit 3; }" && exec "$@"'))
    until_true(namespace, "pi", "Succeeded")
    assert namespace.read(JOBS, "pi-launcher")["status"]["failed"] == 1
    shell = open_shell(namespace, folder, tmp_path / "kubeconfig")
    as_written = "PODNAME=$(kubectl get pods -l mpi_job_name=pi,mpi_role_type=launcher -o name)\nkubectl logs -f ${PODNAME}"
    assert shell.attempt(as_written).returncode != 0, "two names are one too many: hence the command of the guide"
    assert "3.14" in shell.follow("docs/troubleshooting.md", "The log of a launcher that was restarted")


def test_the_guides_commands_show_what_is_amiss_with_a_job(namespace: Kubectl, tmp_path: Path) -> None:
    shell = open_shell(namespace, ROOT, tmp_path / "kubeconfig")
    namespace.apply(held(pi_job("pi")))
    until_true(namespace, "pi", "Running")
    launcher = launcher_pod(namespace)
    said = shell.follow("docs/troubleshooting.md", "What the job shows")
    assert "MPIJobRunning" in said
    assert launcher in said
    assert "Running: MPIJobRunning: " in shell.follow("docs/reference/causes.md", "Causes")
    assert shell.follow("docs/troubleshooting.md", "Does ssh work?") == "pi-worker-0\n"
    assert "[pod/pi-worker-1/mpi-worker]" in shell.follow("docs/troubleshooting.md", "The logs of all workers")
    assert '"msg"' in shell.follow("docs/troubleshooting.md", "The operator's log")
    let_run(namespace, launcher)
    assert "3.14" in shell.follow("docs/troubleshooting.md", "The log of a launcher")
    until_true(namespace, "pi", "Succeeded")


def test_the_sample_for_intel_mpi_is_there(reader: Shell) -> None:
    job = yaml.safe_load(reader.run("cat examples/pi/pi-intel.yaml"))
    assert job["spec"]["mpiImplementation"] == "Intel"
    reader.run("kubectl apply --dry-run=server --validate=strict -f examples/pi/pi-intel.yaml")


# Metrics

TABLE = {
    "mpi_operator_jobs_created_total": ("counter", set[str]()),
    "mpi_operator_jobs_successful_total": ("counter", set[str]()),
    "mpi_operator_jobs_failed_total": ("counter", set[str]()),
    "mpi_operator_job_info": ("gauge", {"launcher", "namespace"}),
    "mpi_operator_job_infos": ("gauge", {"launcher", "namespace"}),
}


def test_the_metrics_of_the_table_have_its_types_and_labels(benchmark: Benchmark, operator: Operator) -> None:
    assert benchmark.job
    leader = operator.until_led()
    text = operator.answer(leader, "/metrics", operator.metrics_port(leader))
    for name, (kind, labels) in TABLE.items():
        assert f"# TYPE {name} {kind}\n" in text
        [sample, *_] = re.findall(rf"^{name}(\S*) ", text, re.MULTILINE)
        assert set(re.findall(r"(\w+)=", sample)) == labels


# Sidecars


def test_the_annotation_that_keeps_istio_out_reaches_the_pods(namespace: Kubectl) -> None:
    job = pi_job("pi")
    for spec in job["spec"]["mpiReplicaSpecs"].values():
        spec["template"]["metadata"] = {"annotations": {"sidecar.istio.io/inject": "false"}}
    namespace.apply(job)
    until_true(namespace, "pi", "Running")
    pods = [*namespace.read_all(PODS, LAUNCHER), *namespace.read_all(PODS, WORKER)]
    assert [pod["metadata"]["annotations"]["sidecar.istio.io/inject"] for pod in pods] == ["false"] * 3


def test_native_sidecars_do_not_keep_a_job_from_its_end(namespace: Kubectl, tmp_path: Path) -> None:
    shell = open_shell(namespace, ROOT, tmp_path / "kubeconfig")
    shell.follow("docs/istio.md", "Native sidecars")
    job = until_true(namespace, "pi-sidecars", "Succeeded")
    assert job["status"]["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    [launcher] = namespace.read_all(PODS, LAUNCHER)
    sidecar = next(each for each in launcher["status"]["initContainerStatuses"] if each["name"] == "sidecar")
    assert sidecar["state"]["terminated"]["reason"] in {"Completed", "Error"}, "it ran until the launcher had ended"
    namespace.until(PODS, lambda pods: not pods, labels=WORKER)


# All pages


def test_every_command_of_the_documents_is_run_by_a_test_or_listed_with_the_reason() -> None:
    shown = {(page, heading) for page in PAGES for heading in headings_with_commands(page)}
    assert shown - NOT_RUN.keys() == followed_by_tests()
    assert NOT_RUN.keys() <= shown


def test_blocks_of_commands_name_their_language() -> None:
    plain = [(page, line) for page in map(str, pages()) for text in blocks_below(page, "").values() for line in text.splitlines()]
    assert [(page, line) for page, line in plain if re.match(r"\$ |kubectl |make |hack/|helm |python3? ", line)] == []


def followed_by_tests() -> set[tuple[str, str]]:
    """Return page and heading of the commands that tests run; a test may have the page in a constant."""
    found: set[tuple[str, str]] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        constants = dict(re.findall(r'^([A-Z_]+) = "([^"]+\.md)"$', text, re.MULTILINE))
        calls = re.findall(r'(?:\.follow\(|\.replay\(|": \()\s*("[^"]+\.md"|[A-Z_]+),\s*"([^"]+)"', text)
        found |= {(constants.get(page, page.strip('"')), heading) for page, heading in calls}
    return found
