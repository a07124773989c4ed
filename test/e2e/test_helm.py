"""The life of a release of the Helm chart next to running jobs: the real helm, both versions in use, the commands of docs/install.md."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from demonstration.operator_images import built_archives
from e2e.charts import CHART, RELEASE, VERSIONS, Helm, helm_of
from e2e.clusters import IS_CURRENT, ROOT, embedded_cluster, load_images, output_shown
from e2e.conftest import NAME, namespace_of_test
from e2e.jobs import LAUNCHER, held, let_run, pi_job, state, until_true
from e2e.kubectl import DEFINITIONS, DEPLOYMENTS, Kubectl, NotSeenError, Obj
from e2e.operator_pods import Operator
from e2e.plugin import new_tool
from e2e.pushing import with_pushing
from e2e.shell import Shell, open_shell
from mpiop.kube.resources import CONFIG_MAPS, JOBS, LEASES, MPIJOBS, PODS

CLUSTER = f"{NAME}-helm"
AIR_GAP = "docs/air-gap.md"
DEFINITION = "mpijobs.kubeflow.org"
ADDED = "addedByTheNextVersion"
TEAM, OTHER_TEAM = "team-b", "team-c"
POOL = "example.com/pool"


@pytest.fixture(scope="module")
def bare(request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl on a cluster with a node and our images, and without the operator."""
    if IS_CURRENT:
        pytest.skip("the user's own cluster is not installed upon twice")
    with output_shown(request), embedded_cluster(CLUSTER) as kubectl:
        load_images(CLUSTER)
        yield kubectl


@pytest.fixture(scope="module", params=VERSIONS)
def helm(request: pytest.FixtureRequest, bare: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return helm_of(request.param, bare, tmp_path_factory.mktemp("helm"))


@pytest.fixture
def reader(helm: Helm, bare: Kubectl, tmp_path: Path) -> Iterator[Shell]:
    """The shell of who reads the guide, in a copy of the checkout; at its end no release and no namespace of the guide is there."""
    folder = tmp_path / "checkout"
    for name in ("charts", "deploy", "examples", "manifests"):
        shutil.copytree(ROOT / name, folder / name)
    here = replace(bare, environment=helm.environment, namespace="default")
    yield open_shell(here, folder, tmp_path / "kubeconfig")
    for release in json.loads(helm.run("list", "--all-namespaces", "--output", "json")):
        helm.run("uninstall", release["name"], "--namespace", release["namespace"], "--wait")
    bare.run("delete", "--ignore-not-found", "-f", "deploy/v2beta1/mpi-operator.yaml")
    bare.run("delete", "namespace", TEAM, OTHER_TEAM, "--ignore-not-found")


@pytest.fixture
def namespace(bare: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    with namespace_of_test(bare, request) as here:
        yield here


def start(here: Kubectl, name: str) -> Obj:
    """Start a job that runs until `finish` lets it end, and return its launcher Pod."""
    here.apply(held(pi_job(name)))
    until_true(here, name, "Running")
    [pod] = here.read_all(PODS, f"{LAUNCHER},training.kubeflow.org/job-name={name}")
    return pod


def finish(here: Kubectl, launcher: Obj) -> None:
    """Let the job of `launcher` end, and see that it succeeds in its first attempt."""
    let_run(here, launcher["metadata"]["name"])
    job = until_true(here, launcher["metadata"]["labels"]["training.kubeflow.org/job-name"], "Succeeded")
    assert job["status"]["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    assert here.read(PODS, launcher["metadata"]["name"])["metadata"]["uid"] == launcher["metadata"]["uid"]


# A release


def definition_fields(bare: Kubectl) -> set[str]:
    """Return the names of the fields of the spec that the CRD on the cluster has."""
    version = bare.read(DEFINITIONS, DEFINITION)["spec"]["versions"][0]
    return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


def change_version(folder: Path) -> None:
    """Make the chart in `folder` one of a later version, whose CRD has another field."""
    chart, definition = folder / CHART / "Chart.yaml", folder / CHART / "files" / "crd.yaml"
    chart.write_text(chart.read_text(encoding="utf-8").replace("\nversion: ", "\nversion: 1"), encoding="utf-8")
    text, mark = definition.read_text(encoding="utf-8"), " slotsPerWorker:\n"
    indent = " " * (text.index(mark) - text.rindex("\n", 0, text.index(mark)))
    definition.write_text(text.replace(mark, f" {ADDED}:\n{indent}  type: string\n{indent}{mark.strip()}\n", 1), encoding="utf-8")


def remaining(bare: Kubectl) -> set[str]:
    """Return the objects, of whatever kind, that carry the release's label."""
    kinds = bare.run("api-resources", "--verbs=list", "--output=name").split()
    return set(bare.run("get", ",".join(kinds), "--all-namespaces", "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name").split())


def until_only_the_definition_remains(bare: Kubectl) -> None:
    """Return when the garbage collector has removed what the API server makes of the release's objects, such as EndpointSlices."""
    expected, deadline = {f"customresourcedefinition.apiextensions.k8s.io/{DEFINITION}"}, time.monotonic() + 60
    while (found := remaining(bare)) != expected:
        if time.monotonic() > deadline:
            raise NotSeenError(f"left after 60 s: {sorted(found - expected)}; missing: {sorted(expected - found)}")


def test_jobs_run_on_across_upgrade_rollback_and_uninstall(helm: Helm, bare: Kubectl, namespace: Kubectl, reader: Shell) -> None:
    own = bare.within(RELEASE)
    reader.follow("docs/install.md", "With Helm", timeout_seconds=200)
    reader.run(f"kubectl label namespace {RELEASE} pod-security.kubernetes.io/enforce=restricted")
    Operator(own).wait_until_ready()
    installed = own.read(DEPLOYMENTS, RELEASE)["spec"]
    assert "pi is approximately 3.1" in reader.follow("docs/install.md", "A first job", timeout_seconds=330)
    first, second = start(namespace, "first"), start(namespace, "second")

    change_version(reader.folder)
    later = replace(helm, folder=reader.folder)
    changes = "--set", "replicas=1", "--set", "resources.requests.cpu=50m"
    later.run("upgrade", RELEASE, CHART, "--namespace", RELEASE, "--wait", *changes)
    assert ADDED in definition_fields(bare)
    upgraded = own.read(DEPLOYMENTS, RELEASE)["spec"]
    [container] = upgraded["template"]["spec"]["containers"]
    assert (upgraded["replicas"], container["resources"]["requests"]["cpu"]) == (1, "50m")
    Operator(own).until_led()
    finish(namespace, first)

    history = reader.follow("docs/install.md", "Upgrade, roll back", timeout_seconds=400)
    assert "mpiop-10.1.0" in history
    assert ADDED not in definition_fields(bare)
    assert own.read(DEPLOYMENTS, RELEASE)["spec"] == installed
    Operator(own).until_led()

    reader.follow("docs/install.md", "Uninstall", timeout_seconds=200)
    until_only_the_definition_remains(bare)
    assert own.read(LEASES, RELEASE)
    assert len(namespace.read_all(MPIJOBS)) == 2
    let_run(namespace, second["metadata"]["name"])
    namespace.until_one(JOBS, "second-launcher", lambda job: job.get("status", {}).get("succeeded") == 1)
    reader.follow("docs/install.md", "With Helm", timeout_seconds=200)
    assert until_true(namespace, "second", "Succeeded")["status"]["replicaStatuses"]["Launcher"] == {"succeeded": 1}


def test_an_installation_by_yaml_becomes_a_release(helm: Helm, bare: Kubectl, namespace: Kubectl, reader: Shell) -> None:
    own = bare.within(RELEASE)
    bare.run("delete", "crd", DEFINITION, "--ignore-not-found")
    reader.run("kubectl apply -f deploy/v2beta1/mpi-operator.yaml")
    Operator(own).wait_until_ready()
    before = own.read(DEPLOYMENTS, RELEASE)["metadata"]
    launcher = start(namespace, "pi")
    ended = helm.attempt("install", RELEASE, CHART, "--namespace", RELEASE)
    assert "cannot be imported into the current release" in ended.stderr
    reader.follow("docs/install.md", "From an installation by YAML", timeout_seconds=200)
    after = own.read(DEPLOYMENTS, RELEASE)["metadata"]
    assert after["uid"] == before["uid"]
    assert after["annotations"]["meta.helm.sh/release-name"] == RELEASE
    assert after["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    # Nobody else owns a field: a value can be changed, and taken away.
    helm.run("upgrade", RELEASE, CHART, "--namespace", RELEASE, "--wait", "--set", "replicas=1", "--set", "resources.limits=null")
    deployment = own.read(DEPLOYMENTS, RELEASE)["spec"]
    assert deployment["replicas"] == 1
    assert "limits" not in deployment["template"]["spec"]["containers"][0]["resources"]
    Operator(own).wait_until_ready()
    finish(namespace, launcher)


def test_metrics_are_for_whom_the_api_server_lets_read_them(helm: Helm, bare: Kubectl, reader: Shell) -> None:
    reader.follow("docs/install.md", "With Helm", timeout_seconds=200)
    answer = bare.attempt("get", "--raw", f"/api/v1/namespaces/{RELEASE}/services/https:{RELEASE}:metrics/proxy/metrics")
    assert "the server has asked for the client to provide credentials" in answer.stderr
    may = "auth", "can-i", "get", "/metrics", "--as=system:serviceaccount:monitoring:prometheus"
    assert bare.attempt(*may).stdout.strip() == "no"
    readers = "--set", "metrics.readers[0].name=prometheus", "--set", "metrics.readers[0].namespace=monitoring"
    helm.run("upgrade", RELEASE, CHART, "--namespace", RELEASE, "--reuse-values", "--wait", *readers)
    assert bare.run(*may).strip() == "yes"


def test_the_notes_name_two_commands_that_work(helm: Helm, reader: Shell) -> None:
    reader.follow("docs/install.md", "With Helm", timeout_seconds=200)
    notes = helm.run("get", "notes", RELEASE, "--namespace", RELEASE)
    rollout, jobs = [line.strip() for line in notes.splitlines() if line.startswith("  kubectl ")]
    assert "successfully rolled out" in reader.run(rollout)
    reader.run(jobs.removesuffix(" --watch"))
    assert "There is no" not in notes


# A registry of one's own, without internet


@pytest.mark.parametrize("helm", ["helm"], indirect=True)
def test_the_images_that_were_brought_in_are_those_that_run(helm: Helm, bare: Kubectl, reader: Shell, tmp_path: Path) -> None:
    operator, agent = built_archives("operator", "agent")
    for archive in (operator, agent):
        (reader.folder / Path(archive).name).symlink_to(archive)
    helm.run("package", CHART, "--destination", str(reader.folder))
    tool = new_tool(replace(bare, namespace="default"), tmp_path)
    environment = {**helm.environment, "KUBECONFIG": tool.environment["KUBECONFIG"]}
    environment["PATH"] = os.pathsep.join((helm.environment["PATH"], tool.environment["PATH"]))
    shell = Shell(with_pushing(environment, tmp_path / "bin", CLUSTER), reader.folder)
    shell.follow(AIR_GAP, "Push or load the images of a release", timeout_seconds=200)
    shell.follow(AIR_GAP, "Install", timeout_seconds=200)
    image, flags = shell.follow(AIR_GAP, "Check it").splitlines()
    assert image == "registry.example.com/team/mpi-operator:v0.1.0"
    assert "--agent-image=registry.example.com/team/mpi-operator-agent:v0.1.0" in flags
    done = shell.run("kubectl mpi doctor --run --image mpiop.invalid/mpi-pi:openmpi", timeout_seconds=240)
    assert "a job of image mpiop.invalid/mpi-pi:openmpi ran on two workers" in done


# Some namespaces

CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}


def test_an_operator_for_one_namespace_has_no_right_in_another(helm: Helm, bare: Kubectl, namespace: Kubectl, reader: Shell) -> None:
    bare.run("delete", "crd", DEFINITION, "--ignore-not-found")
    reader.follow("docs/install.md", "For some namespaces", timeout_seconds=200)
    team, release = bare.within(TEAM), "mpi-operator-b"
    manifest = helm.run("get", "manifest", release, "--namespace", TEAM)
    assert not CLUSTER_WIDE & {each["kind"] for each in yaml.safe_load_all(manifest) if each}
    account = f"--as=system:serviceaccount:{TEAM}:{release}"
    assert bare.attempt("auth", "can-i", "list", "pods", "--namespace", namespace.namespace, account).stdout.strip() == "no"

    # Who installs it again has all rights in the namespace, and none in the cluster.
    helm.run("uninstall", release, "--namespace", TEAM, "--wait")
    team.run("create", "rolebinding", "team-lead", "--clusterrole=cluster-admin", "--user=team-lead")
    lead = "--kube-as-user=team-lead"
    helm.run("install", release, CHART, "--namespace", TEAM, "--set", f"watchNamespaces={{{TEAM}}}", "--wait", lead)

    namespace.apply(pi_job("stranger"))
    finish(team, start(team, "own"))
    assert namespace.read(MPIJOBS, "stranger")["status"] == {"observedGeneration": -1}
    assert namespace.read_all(PODS) == []
    logs = team.run("logs", "--prefix", "--selector", f"app={release}", "--tail=-1")
    assert "forbidden" not in logs.lower()


def test_an_operator_for_two_namespaces_serves_both_and_no_third(helm: Helm, bare: Kubectl, namespace: Kubectl, reader: Shell) -> None:
    reader.run("kubectl apply --server-side --force-conflicts -f manifests/base/kubeflow.org_mpijobs.yaml")
    teams, release = [bare.within(name) for name in (TEAM, OTHER_TEAM)], "mpi-operator-b"
    for team in teams:
        bare.run("create", "namespace", team.namespace)
    helm.run("install", release, CHART, "--namespace", TEAM, "--set", f"watchNamespaces={{{TEAM},{OTHER_TEAM}}}", "--wait")
    manifest = helm.run("get", "manifest", release, "--namespace", TEAM)
    assert not CLUSTER_WIDE & {each["kind"] for each in yaml.safe_load_all(manifest) if each}
    account = f"--as=system:serviceaccount:{TEAM}:{release}"
    assert bare.attempt("auth", "can-i", "list", "pods", "--namespace", namespace.namespace, account).stdout.strip() == "no"

    namespace.apply(pi_job("stranger"))
    launchers = [start(team, "own") for team in teams]
    for team, launcher in zip(teams, launchers, strict=True):
        finish(team, launcher)
        assert team.read(CONFIG_MAPS, "mpi-operator-capabilities")
    assert namespace.read(MPIJOBS, "stranger")["status"] == {"observedGeneration": -1}
    assert namespace.read_all(PODS) == []
    assert [lease["metadata"]["name"] for team in teams for lease in team.read_all(LEASES)] == [release]
    logs = teams[0].run("logs", "--prefix", "--selector", f"app={release}", "--tail=-1")
    assert "forbidden" not in logs.lower()


# Jobs in a chart of the user's


def chart_of(folder: Path, job: Obj) -> str:
    """Write a chart whose only object is the job, and return its path."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: jobs\nversion: 0.1.0\n", encoding="utf-8")
    (folder / "templates" / "job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("helm", ["helm"], indirect=True)
def test_helm_4_waits_for_a_node_and_reports_an_invalid_job(
    helm: Helm, bare: Kubectl, namespace: Kubectl, reader: Shell, tmp_path: Path
) -> None:
    reader.follow("docs/install.md", "With Helm", timeout_seconds=200)
    Operator(bare.within(RELEASE)).wait_until_ready()
    wait = ("--namespace", namespace.namespace, "--wait", "--timeout", "150s")
    job = pi_job()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {POOL: "late"}
    node = bare.run("get", "nodes", "-o", "name").splitlines()[0]
    with ThreadPoolExecutor(1) as pool:
        installing = pool.submit(helm.attempt, "install", "late", chart_of(tmp_path / "late", job), *wait)
        namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "Unschedulable")
        assert not installing.done()
        bare.run("label", node, f"{POOL}=late")
        try:
            installed = installing.result()
        finally:
            bare.run("label", node, f"{POOL}-")
    assert installed.returncode == 0, installed.stderr

    invalid = pi_job("invalid")
    invalid["metadata"]["annotations"] = {"mpiop.kubeflow.org/slots": "auto"}
    refused = helm.attempt("install", "invalid", chart_of(tmp_path / "invalid", invalid), *wait, "--timeout=10s")
    assert refused.returncode != 0
    assert "status: Failed" in refused.stderr, refused.stderr
