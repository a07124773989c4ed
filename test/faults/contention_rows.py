"""Cases of row F63 in which somebody undoes what the operator writes, over and over."""

from collections.abc import Iterator
from typing import Any

from faults.case import Case
from faults.lifecycles import job
from faults.neighbours import make, remove, stay_calm, until_reason
from faults.object_rows import alone
from faults.run import Run
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS, Resource

MUTATING = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False)
MUTATING_BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", namespaced=False
)
_STAMP = {
    "patchType": "JSONPatch",
    "jsonPatch": {
        "expression": "[JSONPatch{op: 'replace', path: '/metadata/labels/app', value: 'label-' + string(oldObject == null ? 0 : "
        "size(oldObject.metadata.resourceVersion) + int(oldObject.metadata.resourceVersion))}]"
    },
}
MOST_RESTORES = 20
"""Of one object in the first minute, by two operators."""


def contentions() -> Iterator[Case]:
    """Policies that change what the operator has set, and another operator."""
    yield alone("F63", "a policy that stamps a label of ours", _stamped)
    yield alone("F63", "a second operator with another cluster domain", _second_operator)


async def _stamped(run: Run) -> None:
    """A policy changes a label of each ConfigMap whenever the operator writes it."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
    mine = {"matchLabels": {"kubernetes.io/metadata.name": run.namespace}}
    match = {"resourceRules": [rule], "namespaceSelector": mine}
    spec = {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": match, "mutations": [_STAMP]}
    await make(run, MUTATING, run.namespace, spec=spec)
    await make(run, MUTATING_BINDINGS, run.namespace, spec={"policyName": run.namespace})
    await run.until("a policy that changes something", lambda: _is_changed(run))
    await run.testbed.client.create(MPIJOBS, job(run))
    words = "a webhook or an admission policy changes metadata.labels.app of ConfigMap pi-config"
    await _check_damping(run, "configmaps", "ChangedBack", words)
    await remove(run, MUTATING_BINDINGS, run.namespace)
    await remove(run, MUTATING, run.namespace)


async def _is_changed(run: Run) -> bool:
    body: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "try", "namespace": run.namespace, "labels": {"app": "try"}}}
    made: Any = await run.testbed.client.create(CONFIG_MAPS, body, is_dry_run=True)
    return made["metadata"]["labels"]["app"] != "try"


async def _check_damping(run: Run, resource: str, reason: str, words: str) -> None:
    """Note it if the job does not report who changes its objects back, or if they are written too often before it reports it."""
    await until_reason(run, "", reason, words)
    await stay_calm(run)
    written = sum(entry.took_effect and entry.target.meaning.resource == resource for entry in run.proxy.trace.entries)
    if written > MOST_RESTORES:
        run.findings.append(f"{written} writes of {resource} that do not last")


async def _second_operator(run: Run) -> None:
    """Another operator, with a Lease of its own and another cluster domain, serves the same jobs."""
    other = run.launch("other", flags=("--lease-name=other", "--cluster-domain=other.example"))
    await other.start()
    await run.until("the other operator", other.is_ready)
    await run.testbed.client.create(MPIJOBS, job(run))
    await _check_damping(run, "configmaps", "SecondOperator", f"mpiop:{run.namespace}/other write different values to data")
