"""Cases of row F63 in which somebody undoes what the operator writes, over and over."""

from collections.abc import Iterator
from typing import Any

from faults.case import Case
from faults.lives import job
from faults.neighbours import make, remove, stay_calm
from faults.object_rows import alone
from faults.run import Action, Run
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS, SERVICES, Resource

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
_ADDRESS = {
    "patchType": "JSONPatch",
    "jsonPatch": {
        "expression": "object.spec.clusterIP == 'None' ? [JSONPatch{op: 'remove', path: '/spec/clusterIP'}, "
        "JSONPatch{op: 'add', path: '/spec/ports', value: [Object.spec.ports{port: 80}]}] : []"
    },
}
MOST_RESTORES = 20
"""Of one object in the first minute, by two operators."""


def contentions() -> Iterator[Case]:
    """Policies that change what the operator has set, and another operator."""
    yield alone("F63", "a policy that stamps a label of ours", _undone("configmaps", _STAMP, "metadata.labels.app of ConfigMap pi-config"))
    yield alone("F63", "a policy that gives the Service an address", _undone("services", _ADDRESS, "spec.clusterIP of Service pi"))
    yield alone("F63", "a second operator with another cluster domain", _second_operator)


def _undone(resource: str, mutation: dict[str, Any], words: str) -> Action:
    """Return a life in which a policy changes each object of `resource` that the operator writes."""

    async def live(run: Run) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE", "UPDATE"]}
        mine = {"matchLabels": {"kubernetes.io/metadata.name": run.namespace}}
        match = {"resourceRules": [rule], "namespaceSelector": mine}
        spec = {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": match, "mutations": [mutation]}
        await make(run, MUTATING, run.namespace, spec=spec)
        await make(run, MUTATING_BINDINGS, run.namespace, spec={"policyName": run.namespace})
        await run.until("a policy that changes something", lambda: _is_changed(run, resource))
        await run.ground.client.create(MPIJOBS, job(run))
        await _check_damping(run, resource, "ChangedBack", f"a webhook or an admission policy changes {words}")
        await remove(run, MUTATING_BINDINGS, run.namespace)
        await remove(run, MUTATING, run.namespace)

    return live


async def _is_changed(run: Run, resource: str) -> bool:
    kind, spec = ("Service", {"clusterIP": "None", "ports": [{"port": 80}]}) if resource == "services" else ("ConfigMap", None)
    body: Any = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "try", "namespace": run.namespace, "labels": {"app": "try"}}}
    made: Any = await run.ground.client.create(SERVICES if spec else CONFIG_MAPS, body | ({"spec": spec} if spec else {}), is_dry_run=True)
    return made["metadata"]["labels"]["app"] != "try" or (made.get("spec", spec) != spec and made["spec"]["clusterIP"] != "None")


async def _check_damping(run: Run, resource: str, reason: str, words: str) -> None:
    """Note it if the job does not say who changes its objects back, or if they are written too often before it says so."""

    async def is_said() -> bool:
        found: Any = await run.job()
        conditions = found.get("status", {}).get("conditions") or ()
        return any(row["reason"] == reason and words in row["message"] for row in conditions if row["status"] == "True")

    await run.until(f"{reason}: {words}", is_said)
    await stay_calm(run)
    written = sum(entry.took_effect and entry.target.meaning.resource == resource for entry in run.proxy.trace.entries)
    if written > MOST_RESTORES:
        run.findings.append(f"{written} writes of {resource} that do not last")


async def _second_operator(run: Run) -> None:
    """Another operator, with a Lease of its own and another cluster domain, serves the same jobs."""
    other = run.launch("other", flags=("--lease-name=other", "--cluster-domain=other.example"))
    await other.start()
    await run.until("the other operator", other.is_ready)
    await run.ground.client.create(MPIJOBS, job(run))
    await _check_damping(run, "configmaps", "SecondOperator", f"mpiop:{run.namespace}/other write different values to data")
