"""What somebody can do who may create MPIJobs in one namespace and nothing else, and what a stolen Pod or node can."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.conftest import new_namespace
from e2e.jobs import LAUNCHER, WORKER, held, is_true, launcher_pod, pi_job, until_true
from e2e.kubectl import CommandError, Kubectl, NotSeenError, Obj
from e2e.shell import blocks_below
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, Resource

TENANT = "tenant"
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
RBAC = "rbac.authorization.k8s.io"
FORBIDDEN = [
    ("get", "mpijobs"),
    ("delete", "mpijobs"),
    ("patch", "mpijobs/status"),
    ("update", "mpijobs/scale"),
    ("create", "pods"),
    ("list", "pods"),
    ("get", "pods/log"),
    ("create", "pods/exec"),
    ("get", "secrets"),
    ("get", "configmaps"),
    ("create", "jobs"),
    ("create", "leases"),
]


@pytest.fixture
def neighbour(cluster: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """Another tenant's namespace."""
    with new_namespace(cluster, "neighbour", request.session) as here:
        yield here


@pytest.fixture
def tenant(namespace: Kubectl) -> Kubectl:
    """The namespace of the tenant, who may create MPIJobs there."""
    metadata = {"name": TENANT}
    rule = {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": ["create"]}
    namespace.apply(
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": TENANT},
            "subjects": [{"kind": "User", "name": TENANT}],
        },
    )
    return namespace


def create(here: Kubectl, job: Obj) -> None:
    here.run("create", f"--as={TENANT}", "-f", "-", stdin=json.dumps(job))


def roles(job: Obj) -> list[Any]:
    return list(job["spec"]["mpiReplicaSpecs"].values())


@pytest.mark.parametrize(("verb", "resource"), FORBIDDEN, ids=lambda word: word)
def test_who_may_create_mpijobs_may_do_nothing_else_at_the_api_server(verb: str, resource: str, tenant: Kubectl) -> None:
    assert tenant.attempt("auth", "can-i", verb, resource, f"--as={TENANT}").stdout.strip() == "no"


def test_who_may_create_mpijobs_can_mount_any_secret_of_the_namespace_and_run_as_any_account(tenant: Kubectl) -> None:
    """As with batch/v1 Jobs: the right to create Pods, in whatever form, is the right to all that Pods of the namespace may have."""
    tenant.run("create", "secret", "generic", "treasure", "--from-literal=word=sesame")
    tenant.run("create", "serviceaccount", "powerful")
    job = held(pi_job(workers=1))
    for role in roles(job):
        spec = role["template"]["spec"]
        spec["serviceAccountName"] = "powerful"
        spec["containers"][0]["env"] = [{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "treasure", "key": "word"}}}]
    create(tenant, job)
    pod = launcher_pod(tenant)
    assert tenant.run("exec", pod, "--", "printenv", "WORD").strip() == "sesame"
    assert tenant.read(PODS, pod)["spec"]["serviceAccountName"] == "powerful"


def test_a_job_makes_nothing_outside_its_namespace(tenant: Kubectl, neighbour: Kubectl) -> None:
    job = held(pi_job(workers=1))
    for role in roles(job):
        role["template"]["metadata"] = {"name": "elsewhere", "namespace": neighbour.namespace}
    create(tenant, job)
    until_true(tenant, "pi", "Running")
    assert neighbour.read_all(PODS) == []
    assert {pod["metadata"]["namespace"] for pod in tenant.read_all(PODS)} == {tenant.namespace}
    with pytest.raises(CommandError, match="forbidden"):
        create(neighbour, job)


def test_a_job_cannot_pass_its_pods_off_as_those_of_another_job(tenant: Kubectl) -> None:
    tenant.apply(held(pi_job("honest", workers=1)))
    until_true(tenant, "honest", "Running")
    before = [pod["metadata"]["uid"] for pod in tenant.read_all(PODS)]
    job = held(pi_job("forger", workers=1))
    for role in roles(job):
        labels = {"training.kubeflow.org/job-name": "honest", "training.kubeflow.org/job-role": "worker"}
        role["template"]["metadata"] = {"labels": labels, "annotations": {"mpiop.kubeflow.org/addresses": "0 192.0.2.1"}}
    create(tenant, job)
    until_true(tenant, "forger", "Running")
    pods = tenant.read_all(PODS)
    honest = [pod for pod in pods if pod["metadata"]["labels"]["training.kubeflow.org/job-name"] == "honest"]
    assert [pod["metadata"]["uid"] for pod in honest] == before
    [launcher] = [pod for pod in tenant.read_all(PODS, LAUNCHER) if pod["metadata"]["name"].startswith("forger")]
    assert "192.0.2.1" not in launcher["metadata"]["annotations"]["mpiop.kubeflow.org/addresses"]


@pytest.mark.parametrize(("kind", "resource", "name"), [("configmap", CONFIG_MAPS, "pi-config"), ("secret generic", SECRETS, "pi-ssh")])
def test_a_job_cannot_take_over_what_is_there(kind: str, resource: Resource, name: str, tenant: Kubectl) -> None:
    tenant.run("create", *kind.split(), name, "--from-literal=word=sesame")
    before = tenant.read(resource, name)
    create(tenant, pi_job())
    tenant.until_one(MPIJOBS, "pi", lambda job: is_true(job, "Stalled"))
    assert tenant.read(resource, name) == before
    assert tenant.read_all(JOBS) == []


def test_a_job_cannot_bring_its_own_status(tenant: Kubectl) -> None:
    ended = [{"type": "Succeeded", "status": "True", "reason": "x", "message": "x"}]
    create(tenant, held(pi_job(workers=1)) | {"status": {"conditions": ended, "startTime": "2020-01-01T00:00:00Z"}})
    job = until_true(tenant, "pi", "Running")
    assert not is_true(job, "Succeeded")
    assert not job["status"]["startTime"].startswith("2020")


def test_the_key_of_a_stolen_pod_opens_no_pod_of_another_job(tenant: Kubectl) -> None:
    tenant.apply(held(pi_job("stolen", workers=1)), held(pi_job("other", workers=1)))
    for name in ("stolen", "other"):
        until_true(tenant, name, "Running")
    [thief] = [pod["metadata"]["name"] for pod in tenant.read_all(PODS, LAUNCHER) if pod["metadata"]["name"].startswith("stolen")]
    own, others = (f"{name}-worker-0.{name}.{tenant.namespace}.svc" for name in ("stolen", "other"))
    ssh = ("exec", thief, "--", "ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no")
    assert tenant.run(*ssh, own, "hostname").strip() == "stolen-worker-0"
    refused = tenant.attempt(*ssh, others, "hostname")
    assert refused.returncode
    assert "Permission denied" in refused.stderr


def test_a_quota_limits_how_many_jobs_a_tenant_may_have(tenant: Kubectl) -> None:
    recipe = blocks_below("docs/install.md", "yaml")["Limit what a tenant can create"]
    quota = yaml.safe_load(recipe)
    counted = "count/mpijobs.kubeflow.org"
    quota["metadata"]["namespace"] = tenant.namespace
    quota["spec"]["hard"][counted] = "1"
    # The quota controller looks for new CRDs every 30 s, and counts a quota when it changes: soon after the CRD was made it needs a nudge.
    for pods in range(1000, 1010):
        quota["spec"]["hard"]["pods"] = str(pods)
        tenant.apply(quota)
        with contextlib.suppress(NotSeenError):
            tenant.until_one(RESOURCE_QUOTAS, "mpijobs", lambda obj: counted in obj.get("status", {}).get("used", {}), timeout_seconds=10)
            break
    create(tenant, held(pi_job("one", workers=1)))
    with pytest.raises(CommandError, match="exceeded quota"):
        create(tenant, held(pi_job("two", workers=1)))


def test_a_stolen_pod_has_no_more_rights_than_its_service_account(tenant: Kubectl) -> None:
    tenant.apply(held(pi_job(workers=1)))
    until_true(tenant, "pi", "Running")
    for pod in tenant.read_all(PODS):
        assert pod["spec"]["serviceAccountName"] == "default"
    account = f"--as=system:serviceaccount:{tenant.namespace}:default"
    for verb, resource in (("get", "secrets"), ("create", "mpijobs"), ("create", "pods"), ("get", "mpijobs")):
        assert tenant.attempt("auth", "can-i", verb, resource, account).stdout.strip() == "no"


def test_a_stolen_node_reads_no_key_of_a_job_that_has_no_pod_on_it(tenant: Kubectl) -> None:
    tenant.apply(held(pi_job(workers=1)))
    until_true(tenant, "pi", "Running")
    node = tenant.read_all(PODS, WORKER)[0]["spec"]["nodeName"]
    ask = ("get", "secret", "pi-ssh", "--as-group=system:nodes", "-o", "name")
    assert tenant.run(*ask, f"--as=system:node:{node}").strip() == "secret/pi-ssh"
    refused = tenant.attempt(*ask, "--as=system:node:stolen")
    assert "no relationship found between node 'stolen' and this object" in refused.stderr
