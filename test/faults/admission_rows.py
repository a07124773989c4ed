"""Rows about who may refuse: quotas, limits, policies, webhooks, and what a Pod names that does not exist."""

from collections.abc import Callable, Coroutine, Iterator
from http import HTTPStatus
from typing import Any

from faults.case import Case
from faults.contention_rows import MUTATING, MUTATING_BINDINGS, contentions
from faults.enumeration import Lifecycles
from faults.lifecycles import job, until_condition, until_workers
from faults.neighbours import (
    CHILDREN,
    CONTAINERS,
    LIMIT_RANGES,
    POLICIES,
    POLICY_BINDINGS,
    PRIORITY_CLASSES,
    QUOTAS,
    WEBHOOKS,
    change,
    make,
    remove,
    stay_calm,
    until_reason,
)
from faults.object_rows import IDLE_SECONDS, alone, job_with, live_on, start
from faults.rows import Row
from faults.run import Action, Run
from faults.state import BYSTANDER
from faults.testbed import ACCOUNTS
from mpiop.kube.errors import StatusError
from mpiop.kube.resources import MPIJOBS, PODS

Script = Callable[[Run], Coroutine[Any, Any, None]]
NOBODY = "https://127.0.0.1:1/"
"""Nothing listens there."""
MOST_TRIES = 4
DENIAL = "no Pods on Sundays"
ADDED_LABEL = "example.org/team"
ADDITIONS = {
    "label": (["pods", "services", "configmaps", "secrets", "jobs"], f"metadata: Object.metadata{{labels: {{'{ADDED_LABEL}': 'blue'}}}}"),
    "sidecar": (["pods"], "spec: Object.spec{containers: [Object.spec.containers{name: 'sidecar', image: 'nothing'}]}"),
}
"""By policy: to what it adds something, and the fields of the configuration that it applies."""


def _hindered(row: str, what: str, begin: Action, script: Script | None) -> Case:
    """Return a case in which something is in the way of Pods until the script takes it away."""
    return Case(row, "succeed", what, stages=(("begin", begin),), script=script, seconds=IDLE_SECONDS, wants_hit=False)


def f62(_: Lifecycles) -> Iterator[Case]:
    """A quota or a limit has no room for the Pods, until it has."""
    for room in (1, 2):
        yield _hindered("F62", f"a quota with room for {room} of the Pods", _quota(room), _raise_quota)
    yield _hindered("F62", "a limit below what the Pods request", _limit, _raise_limit)


def _quota(room: int) -> Action:
    async def begin(run: Run) -> None:
        # One of the Pods that are there is the bystander.
        await make(run, QUOTAS, "quota", spec={"hard": {"pods": str(room + 1)}})
        await run.until_object(QUOTAS, "quota", "a quota that counts", lambda found: "pods" in found.get("status", {}).get("used", {}))

    return begin


async def _raise_quota(run: Run) -> None:
    await until_reason(run, "Stalled", "QuotaExceeded", "exceeded quota: quota")
    await stay_calm(run)
    await change(run, QUOTAS, "quota", {"spec": {"hard": {"pods": "10"}}})


async def _limit(run: Run) -> None:
    await make(run, LIMIT_RANGES, "limit", spec={"limits": [{"type": "Container", "max": {"memory": "1Mi"}}]})


async def _raise_limit(run: Run) -> None:
    await until_reason(run, "Stalled", "ValidationError", "memory limit of 1Mi")
    await stay_calm(run)
    await remove(run, LIMIT_RANGES, "limit")


def f63(_: Lifecycles) -> Iterator[Case]:
    """Policies and webhooks that deny, do not answer, are in the way of deletions, or change what is made."""
    yield _hindered("F63", "a policy that denies Pods", _policy("CREATE"), _allow_creations)
    yield _hindered("F63", "a policy that denies deletions", _policy("DELETE"), _allow_deletions)
    yield _hindered("F63", "a webhook that does not answer", _webhook("Fail"), _answer)
    yield _hindered("F63", "a webhook that need not answer", _webhook("Ignore"), None)
    yield alone("F63", "a quota's defaults that change the Pods", _defaults)
    yield alone("F63", "policies that add a label and a sidecar", _additions)
    yield from contentions()


def _policy(operation: str) -> Action:
    async def begin(run: Run) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": [operation]}
        mine = {"matchLabels": {"kubernetes.io/metadata.name": run.namespace}}
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": mine},
            "validations": [{"expression": "false", "message": DENIAL}],
        }
        await make(run, POLICIES, run.namespace, spec=spec)
        await make(run, POLICY_BINDINGS, run.namespace, spec={"policyName": run.namespace, "validationActions": ["Deny"]})
        if operation == "CREATE":
            await run.until("a policy that holds", lambda: _is_refused(run, DENIAL))

    return begin


async def _is_refused(run: Run, words: str) -> bool:
    body: Any = {"metadata": {"name": f"{BYSTANDER}-try", "namespace": run.namespace}, "spec": CONTAINERS}
    try:
        await run.testbed.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body}, is_dry_run=True)
    except StatusError as error:
        return words in error.status_message
    return False


async def _allow_creations(run: Run) -> None:
    await until_reason(run, "Stalled", "Forbidden", DENIAL)
    await stay_calm(run)
    await _lift(run)


async def _allow_deletions(run: Run) -> None:
    await until_condition(run, "Succeeded")

    async def are_refused() -> bool:
        refused = [
            e for e in run.proxy.trace.entries if str(e.target.meaning).startswith("delete pods/") and e.code >= HTTPStatus.BAD_REQUEST
        ]
        return len(refused) > MOST_TRIES

    await run.until("deletions that are refused", are_refused)
    await _lift(run)


async def _lift(run: Run) -> None:
    await remove(run, POLICY_BINDINGS, run.namespace)
    await remove(run, POLICIES, run.namespace)


def _webhook(on_failure: str) -> Action:
    async def begin(run: Run) -> None:
        hook = {
            "name": "nobody.example.org",
            "clientConfig": {"url": NOBODY},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": run.namespace}},
            "failurePolicy": on_failure,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 2,
        }
        await make(run, WEBHOOKS, run.namespace, webhooks=[hook])
        if on_failure == "Fail":
            await run.until("a webhook that is asked", lambda: _is_refused(run, "nobody.example.org"))

    return begin


async def _answer(run: Run) -> None:
    await until_reason(run, "Stalled", "WriteFailed", "nobody.example.org")
    await stay_calm(run)
    await remove(run, WEBHOOKS, run.namespace)


async def _defaults(run: Run) -> None:
    """Requests and limits that admission adds to the Pods are no reason to write them again."""
    limits = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1m"}}
    await make(run, LIMIT_RANGES, "defaults", spec={"limits": [limits]})
    await live_on(run, job(run))
    _check_writes(run)


def _check_writes(run: Run) -> None:
    writes = run.proxy.trace.effects("create", "delete")
    if [count for count in writes.values() if count > 1]:
        run.findings.append(f"something was made or deleted more than once: {writes}")


async def _additions(run: Run) -> None:
    """What admission adds to each child, at each write of it, is left there, and is not a reason to write it again."""
    for what, (resources, fields) in ADDITIONS.items():
        rule = {"apiGroups": ["", "batch"], "apiVersions": ["v1"], "resources": resources, "operations": ["CREATE", "UPDATE"]}
        mine = {"matchLabels": {"kubernetes.io/metadata.name": run.namespace}}
        spec = {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": mine},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": f"Object{{{fields}}}"}}],
        }
        await make(run, MUTATING, f"{run.namespace}-{what}", spec=spec)
        await make(run, MUTATING_BINDINGS, f"{run.namespace}-{what}", spec={"policyName": f"{run.namespace}-{what}"})
    await run.until("policies that add", lambda: _is_added_to(run))
    await start(run)
    await stay_calm(run)
    found = [await run.find(*child) for child in CHILDREN.values()]
    if bare := [each["metadata"]["name"] for each in found if ADDED_LABEL not in each["metadata"]["labels"]]:
        run.findings.append(f"what was added is gone: {bare}")
    run.end_launcher("Succeeded")
    await until_condition(run, "Succeeded")
    _check_writes(run)
    for what in ADDITIONS:
        await remove(run, MUTATING_BINDINGS, f"{run.namespace}-{what}")
        await remove(run, MUTATING, f"{run.namespace}-{what}")


async def _is_added_to(run: Run) -> bool:
    body: Any = {"metadata": {"name": f"{BYSTANDER}-try", "namespace": run.namespace}, "spec": CONTAINERS}
    made: Any = await run.testbed.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body}, is_dry_run=True)
    return ADDED_LABEL in made["metadata"].get("labels", {}) and len(made["spec"]["containers"]) > 1


def f71(_: Lifecycles) -> Iterator[Case]:
    """What the Pods name does not exist, until it does."""
    yield alone("F71", "no ServiceAccount", _without("serviceAccountName", ACCOUNTS, "absent"), seconds=IDLE_SECONDS)
    yield alone("F71", "no PriorityClass", _without("priorityClassName", PRIORITY_CLASSES, ""), seconds=IDLE_SECONDS)


def _without(field: str, resource: Any, name: str) -> Action:
    async def live(run: Run) -> None:
        missing = name or run.namespace
        made = job_with(run, lambda spec: spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update({field: missing}))
        await run.testbed.client.create(MPIJOBS, made)
        await until_reason(run, "Stalled", "Forbidden", missing)
        await stay_calm(run)
        await make(run, resource, missing, **({} if resource.namespaced else {"value": 7}))
        await until_workers(run, 2)
        if not resource.namespaced:
            await remove(run, resource, missing)

    return live


ADMISSION = (
    Row("F62", "quotas and limits", f62),
    Row("F63", "policies and webhooks", f63),
    Row("F71", "a ServiceAccount or PriorityClass is missing", f71),
)
