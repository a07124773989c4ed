"""What others make in a run's namespace, and what a run waits for because of it."""

import time
from typing import Any, cast

from faults.run import Run
from faults.state import JOB
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource, Selection

_ADMISSION = "admissionregistration.k8s.io"
POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
POLICY_BINDINGS = Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False)
WEBHOOKS = Resource(_ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)

CHILDREN = {
    "Service": (SERVICES, "pi"),
    "ConfigMap": (CONFIG_MAPS, "pi-config"),
    "Secret": (SECRETS, "pi-ssh"),
    "Job": (JOBS, "pi-launcher"),
    "Pod": (PODS, "pi-worker-0"),
}
CONTAINERS = {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [{"name": "main", "image": "nothing"}]}
MOST_REFUSED = 45
"""Requests in `CALM_SECONDS` of a job that waits for its user: ten retries, after 5, 10, 20 … ms, of a few requests each; later there is
one a minute. A loop without pauses has hundreds."""
CALM_SECONDS = 5.0


async def make(run: Run, resource: Resource, name: str, **more: Any) -> Object:
    """Create an object, in the run's namespace if it is in one."""
    metadata = {"name": name, **({"namespace": run.namespace} if resource.namespaced else {}), **more.pop("metadata", {})}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more}
    return await run.testbed.client.create(resource, cast("Object", body))


async def remove(run: Run, resource: Resource, name: str) -> None:
    """Delete an object, if it is there."""
    key = Key(run.namespace if resource.namespaced else "", name)
    try:
        found = await run.testbed.client.get(resource, key)
        await run.testbed.client.delete(resource, key, uid=uid_of(found))
    except StatusError as error:
        if not error.is_not_found:
            raise


async def change(run: Run, resource: Resource, name: str, body: dict[str, Any], *, subresource: str = "") -> Object:
    """Merge `body` into an object of the run's namespace."""
    return await run.testbed.client.patch(resource, Key(run.namespace, name), body, subresource=subresource)


async def until_reason(run: Run, type_: str, reason: str, words: str = "") -> None:
    """Wait until a condition of the job, "" is any, is True for that reason, with the words; Reconciling counts as Stalled."""
    types = {type_, "Reconciling"} if type_ == "Stalled" else {type_}

    def is_said(job: Any) -> bool:
        rows = [each for each in job.get("status", {}).get("conditions") or () if each["status"] == "True" and each["reason"] == reason]
        return any(words in each["message"] and (not type_ or each["type"] in types) for each in rows)

    await run.until_object(MPIJOBS, JOB, f"{type_ or 'a condition'} because of {reason}: {words}", is_said)


async def until_gone(run: Run, resource: Resource, name: str) -> None:
    """Wait until an object does not exist."""

    async def is_gone() -> bool:
        return await run.find(resource, name) is None

    await run.until(f"no {resource.kind} {name}", is_gone)


async def until_there(run: Run, resource: Resource, name: str) -> None:
    """Wait until an object exists."""
    await run.until_object(resource, name, f"{resource.kind} {name}", lambda _: True)


async def events_of(run: Run, reason: str) -> list[Object]:
    """Return the events of a reason in the run's namespace."""
    page = await run.testbed.client.list_page(Selection(EVENTS, run.namespace), resource_version="")
    found: Any = page["items"]
    return [each for each in found if each["reason"] == reason]


async def stay_calm(run: Run) -> None:
    """Note it if the operator continues sending requests about a job that waits for its user."""
    trace, begun = run.proxy.trace, run.proxy.trace.now()
    ended = time.monotonic() + CALM_SECONDS

    async def is_over() -> bool:
        return time.monotonic() > ended

    await run.until("some seconds of calm", is_over)
    sent = [entry for entry in trace.entries if entry.at > begun and entry.target.meaning.resource != "leases"]
    sent = [entry for entry in sent if entry.target.meaning.verb not in {"watch", "event"}]
    if len(sent) > MOST_REFUSED:
        run.findings.append(f"{len(sent)} requests in {CALM_SECONDS:.0f} s about a job that waits for its user")


async def change_job(run: Run, spec: dict[str, Any]) -> None:
    """Change the spec of the job."""
    await run.testbed.client.patch(MPIJOBS, run.key, {"spec": spec})
