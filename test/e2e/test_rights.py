"""What the operator may do is what it does: the audit log of the API server over all of these tests, against its roles. Runs last."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from e2e.audit import OPERATOR, Right, Rights, rights_asked_for
from e2e.clusters import IS_CURRENT, ROOT
from e2e.conftest import NAME
from e2e.kubectl import Kubectl
from e2e.operator_pods import Operator
from e2e.rights import OPTIONAL, WHEN_A_NAME_IS_TAKEN, WITHOUT_WATCH_LISTS, granted, owning
from e2e.waiting import wait_until
from embedded.layout import layout_of

NEEDED = frozenset({"test_causes", "test_cleanup", "test_lifecycle", "test_operator", "test_pi", "test_suspend"})
"""Modules without which not every right is used."""

IN_AN_OLDER_KUBERNETES = "Kubernetes up to 1.35 needs it to resume a job; 1.36 clears startTime itself"
FOR_THE_SERVER = "the API server looks for it, and no request is made for it (test_F72_… below)"
FOR_GANGS = "gang scheduling is off here (test_rights.py of make conformance; make e2e SUITE=gang)"
WHEN_OTHERS_EDIT = "others edit it (row F67 of make faults)"
CHILDREN = (("", "pods"), ("", "services"), ("", "configmaps"), ("batch", "jobs"))
UNUSED: Mapping[Right, str] = {
    **{Right("list", group, resource): WITHOUT_WATCH_LISTS for group, resource in (*CHILDREN, ("kubeflow.org", "mpijobs"))},
    **{right: FOR_GANGS for right in granted() if right.group.startswith("scheduling.")},
    Right("patch", "batch", "jobs/status"): IN_AN_OLDER_KUBERNETES,
    Right("patch", "", "services"): WHEN_OTHERS_EDIT,
    **{Right("get", group, resource): WHEN_A_NAME_IS_TAKEN for group, resource in CHILDREN},
    Right("update", "kubeflow.org", "mpijobs/finalizers"): FOR_THE_SERVER,
}
NEVER_ASKED_FOR = frozenset({FOR_THE_SERVER, FOR_GANGS})
"""Reasons for which no request is made here, whatever happens; the others are of what may happen, or not, in a run."""
BOUND = frozenset({"mpi-operator", "mpi-operator-leader-election", "mpi-operator-launcher-logs"})
"""Roles; the last one where a test follows the guide to the logs of launchers."""


@pytest.fixture(scope="module")
def asked(operator: Operator, cluster: Kubectl) -> Rights:
    """What the operator has asked for, when the audit log has all requests so far."""
    assert operator.pods()
    if IS_CURRENT:
        pytest.skip("the audit log of the user's own cluster is not here")
    mark = f"mark-{uuid.uuid4()}"
    cluster.attempt("get", "namespace", mark)
    log = layout_of(NAME).log("audit")
    wait_until("the last request in the audit log", lambda: mark.encode() in log.read_bytes(), look_seconds=0.5)
    return rights_asked_for(NAME)


def test_the_operator_is_refused_nothing_but_what_is_optional(asked: Rights) -> None:
    assert asked.refused <= set(OPTIONAL)


def test_each_right_is_used_or_has_a_reason(asked: Rights, request: pytest.FixtureRequest) -> None:
    ran = {item.path.stem for item in request.session.items}
    if missing := NEEDED - ran:
        pytest.skip(f"only a run with {', '.join(sorted(missing))} uses every right")
    assert sorted(set(granted()) - asked.used - set(UNUSED)) == []


def test_each_exception_is_a_right_that_the_operator_has() -> None:
    assert sorted(set(UNUSED) - set(granted())) == []


def test_no_right_is_used_that_is_for_gangs_or_for_the_server(asked: Rights) -> None:
    assert sorted(right for right in asked.used if UNUSED.get(right) in NEVER_ASKED_FOR) == []


def test_nothing_else_is_bound_to_the_operator(operator: Operator, cluster: Kubectl) -> None:
    assert operator.pods()
    bound = [
        each["roleRef"]["name"]
        for kind in ("clusterrolebindings", "rolebindings")
        for each in json.loads(cluster.run("get", kind, "--all-namespaces", "-o", "json"))["items"]
        if any(subject.get("name") == "mpi-operator" and subject["kind"] == "ServiceAccount" for subject in each.get("subjects") or ())
    ]
    assert {"mpi-operator", "mpi-operator-leader-election"} <= set(bound) <= BOUND


@pytest.mark.parametrize("verb", ["list", "watch", "update", "patch", "deletecollection"])
def test_no_right_over_secrets_but_those_by_name(verb: str, operator: Operator, cluster: Kubectl) -> None:
    assert operator.pods()
    assert {right.verb for right in granted() if right.resource == "secrets"} == {"create", "get", "delete"}
    answer = cluster.attempt("auth", "can-i", verb, "secrets", f"--as={OPERATOR}", "--all-namespaces").stdout.strip()
    assert answer == "no"


def test_it_asks_for_no_secret_but_the_keys_of_its_jobs(asked: Rights) -> None:
    assert asked.secrets
    assert {name for name in asked.secrets if not name.endswith("-ssh")} == set()


@pytest.mark.parametrize("has_right", [True, False])
def test_F72_only_with_the_right_over_finalizers_may_the_operator_own_what_it_makes(
    has_right: bool,  # noqa: FBT001 - a parameter
    namespace: Kubectl,
    cluster: Kubectl,
) -> None:
    role: Any = next(yaml.safe_load_all((ROOT / "manifests/base/cluster-role.yaml").read_text(encoding="utf-8")))
    rules = [rule for rule in role["rules"] if has_right or rule["resources"] != ["mpijobs/finalizers"]]
    name = f"finalizers-{'with' if has_right else 'without'}"
    metadata = {"name": name, "namespace": namespace.namespace}
    rbac = "rbac.authorization.k8s.io"
    namespace.apply(
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "User", "name": name}],
        },
    )
    tried = owning(namespace, name)
    assert bool(tried.returncode) is not has_right, tried.stderr
    assert cluster
    if not has_right:
        assert "cannot set blockOwnerDeletion" in tried.stderr
