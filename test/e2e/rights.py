"""The rights that the manifests give the operator, and why some of them are seen rarely."""

import subprocess
import uuid
from collections.abc import Iterator, Mapping

import yaml

from e2e.audit import Right
from e2e.clusters import ROOT
from e2e.kubectl import Kubectl

WITHOUT_WATCH_LISTS = "for API servers that send no list by watches (row F15 of make faults)"
WHEN_A_NAME_IS_TAKEN = "whose the object is that has the name of a child (row F60 of make faults)"
OPTIONAL: Mapping[Right, str] = {
    Right("get", "", "pods/log"): "without the component launcher-logs it asks now and then, and goes on without",
}
"""What it asks for though it may be refused."""
ROLES = ("cluster-role", "role")


def granted() -> Iterator[Right]:
    """Yield each right of the operator's roles."""
    for name in ROLES:
        for document in yaml.safe_load_all((ROOT / f"manifests/base/{name}.yaml").read_text(encoding="utf-8")):
            for rule in document.get("rules") or ():
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        yield from (Right(verb, group, resource) for verb in rule["verbs"])


def owning(here: Kubectl, user: str) -> subprocess.CompletedProcess[str]:
    """Return what the API server answers when `user` makes, as a trial, an object that an MPIJob owns."""
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": str(uuid.uuid4())}
    child = {"name": "pi-config", "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}]}
    body = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": child})
    return here.attempt("create", "--dry-run=server", f"--as={user}", "-f", "-", stdin=body)
