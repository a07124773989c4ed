"""The policies that we offer, on a real API server: what each refuses, with which words, and what it lets pass."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import yaml

from e2e.clusters import ROOT
from e2e.kubectl import Kubectl, Obj
from e2e.shell import open_shell
from e2e.waiting import wait_until
from fuzz.jobs import good_job
from mpiop.api.parse import parse_mpijob
from mpiop.controller import names
from mpiop.kube.resources import MPIJOBS, Resource

FOLDER = ROOT / "manifests" / "policies"
POLICIES = ("mpijob-limits", "mpijob-pods")
CRD = ROOT / "manifests" / "base" / "kubeflow.org_mpijobs.yaml"
ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
IMAGE = "registry.example.com/pi:1"
LIMITS = {"limits": {"cpu": "1", "memory": "1Gi"}}


def allowed_job(name: str = "pi") -> Obj:
    """Return a job that all policies let pass."""
    job = good_job(name)
    for role in job["spec"]["mpiReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["automountServiceAccountToken"] = False
        spec["containers"][0] |= {"image": IMAGE, "resources": LIMITS}
    return job


class Case(NamedTuple):
    """What is changed in a job, and what is reported of it; "" if it passes."""

    id: str
    change: Callable[[Any], object]
    refused: str = ""


def worker(job: Any) -> Any:
    return job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]


def launcher(job: Any) -> Any:
    return job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]


def volume(spec: Any, **source: Any) -> None:
    spec["volumes"] = [{"name": "v", **source}]


def variable(spec: Any, **source: Any) -> None:
    spec["containers"][0]["env"] = [{"name": "V", "valueFrom": source}]


CASES = [
    Case("as it should be", lambda job: job),
    Case("no workers", lambda job: job["spec"]["mpiReplicaSpecs"].pop("Worker")),
    Case("64 workers", lambda job: job["spec"]["mpiReplicaSpecs"]["Worker"].update(replicas=64)),
    Case("65 workers", lambda job: job["spec"]["mpiReplicaSpecs"]["Worker"].update(replicas=65), "at most 64 workers, not 65"),
    Case("no limits", lambda job: worker(job)["containers"][0].pop("resources"), "each container needs limits of cpu and memory"),
    Case("no limit of memory", lambda job: launcher(job)["containers"][0]["resources"]["limits"].pop("memory"), "limits of cpu and memory"),
    Case("a year", lambda job: job["spec"]["runPolicy"].update(activeDeadlineSeconds=31536000), "a job may take a week at most"),
    Case("another account", lambda job: worker(job).update(serviceAccountName="admin"), "run with the ServiceAccount default"),
    Case("a token", lambda job: launcher(job).pop("automountServiceAccountToken"), "automountServiceAccountToken: false in both"),
    Case("another image", lambda job: worker(job)["containers"][0].update(image="evil:1"), "images come from registry.example.com"),
    Case(
        "another image to begin with",
        lambda job: launcher(job).update(initContainers=[{"name": "init", "image": "evil:1", "resources": LIMITS}]),
        "images come from registry.example.com",
    ),
    Case(
        "another account by the old name", lambda job: launcher(job).update(serviceAccount="admin"), "run with the ServiceAccount default"
    ),
    Case(
        "no limits to begin with", lambda job: worker(job).update(initContainers=[{"name": "init", "image": IMAGE}]), "each container needs"
    ),
    Case("a Secret", lambda job: volume(worker(job), secret={"secretName": "s"}), "volumes are an emptyDir"),
    Case(
        "a Secret among others",
        lambda job: volume(worker(job), projected={"sources": [{"secret": {"name": "s"}}]}),
        "volumes are an emptyDir",
    ),
    Case("the node", lambda job: volume(launcher(job), hostPath={"path": "/"}), "volumes are an emptyDir"),
    Case(
        "a driver",
        lambda job: volume(worker(job), csi={"driver": "x.io", "nodePublishSecretRef": {"name": "s"}}),
        "volumes are an emptyDir",
    ),
    Case(
        "a variable of a Secret",
        lambda job: variable(worker(job), secretKeyRef={"name": "s", "key": "k"}),
        "no variable comes from a Secret",
    ),
    Case(
        "all variables of a Secret",
        lambda job: launcher(job)["containers"][0].update(envFrom=[{"secretRef": {"name": "s"}}]),
        "no variable comes from a Secret",
    ),
    Case("a variable of a ConfigMap", lambda job: variable(worker(job), configMapKeyRef={"name": "c", "key": "k"})),
    Case("a claim", lambda job: volume(worker(job), persistentVolumeClaim={"claimName": "data"})),
    Case("a ConfigMap", lambda job: volume(worker(job), configMap={"name": "c"})),
    Case("an empty volume", lambda job: volume(worker(job), emptyDir={})),
]


@pytest.fixture(scope="module")
def here(empty: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """A namespace in which the policies are in force, by the commands of the page."""
    empty.run("apply", "--server-side", "-f", str(CRD))
    empty.run("wait", "--for=create", "crd/mpijobs.kubeflow.org")
    empty.run("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org")
    for name in ("team-a", "free"):
        empty.run("create", "namespace", name)
    shell = open_shell(empty.within("default"), ROOT, tmp_path_factory.mktemp("policies") / "kubeconfig")
    shell.follow("docs/threat-model.md", "Policies")
    found = empty.within("team-a")
    for case in ("65 workers", "another image"):  # one of each file: the API server takes policies up a moment later
        wait_until("the policies are in force", lambda case=case: attempt(found, changed(case)).returncode != 0)  # type: ignore[misc]  # bound now
    return found


def changed(case_id: str) -> Obj:
    case = next(each for each in CASES if each.id == case_id)
    job = copy.deepcopy(allowed_job())
    case.change(job)
    return job


def attempt(here: Kubectl, job: Obj) -> Any:
    return here.attempt("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(job))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_example_policies_refuse_what_they_say_and_nothing_else(case: Case, here: Kubectl) -> None:
    tried = attempt(here, changed(case.id))
    assert bool(tried.returncode) is bool(case.refused), tried.stderr
    assert case.refused in tried.stderr


def test_they_hold_for_edits_and_for_the_scale(here: Kubectl) -> None:
    here.apply(allowed_job("edited"))
    edited = here.attempt(
        "patch", "mpijob", "edited", "--type=merge", '--patch={"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 65}}}}'
    )
    assert "at most 64 workers, not 65" in edited.stderr
    assert "at most 64 workers, not 66" in here.attempt("scale", "mpijob/edited", "--replicas=66").stderr
    here.run("scale", "mpijob/edited", "--replicas=3")
    assert here.read(MPIJOBS, "edited")["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3


def test_they_hold_only_where_the_label_is(here: Kubectl) -> None:
    assert not attempt(here.within("free"), changed("65 workers")).returncode


def test_no_policy_has_a_mistake_in_its_types(here: Kubectl) -> None:
    for name in (*POLICIES, "mpijob-scale"):
        checked = here.until_one(ADMISSION_POLICIES, name, lambda found: "typeChecking" in found.get("status", {}))
        assert "expressionWarnings" not in checked["status"]["typeChecking"]


def test_the_server_takes_the_network_policies_and_they_are_about_the_pods_of_jobs(here: Kubectl) -> None:
    here.run("apply", "--validate=strict", "-f", str(FOLDER / "network-policies.yaml"))
    job = parse_mpijob({**good_job("pi"), "metadata": {"name": "pi", "namespace": here.namespace, "uid": "u"}})  # type: ignore[typeddict-item]
    of_pods = [names.pod_labels(job, "launcher"), names.pod_labels(job, "worker", worker=0)]
    [of_the_job] = [each["spec"] for each in here.read_all(NETWORK_POLICIES) if each["metadata"]["name"] == "mpijob-pi"]
    for selector in (of_the_job["podSelector"], of_the_job["ingress"][0]["from"][0]["podSelector"]):
        assert all(selector["matchLabels"].items() <= labels.items() for labels in of_pods)
        assert not selector["matchLabels"].items() <= {**of_pods[0], "training.kubeflow.org/job-name": "another"}.items()
    assert of_the_job["policyTypes"] == ["Ingress"]
