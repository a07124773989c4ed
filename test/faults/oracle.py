"""What must hold in every run, and at the end of it: the standing oracle."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.run import Run
from faults.state import JOB, State, difference
from faults.trace import Trace
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, is_terminating, key_of, resource_version_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, PODS, SECRETS

MOST_REQUESTS_A_SECOND = 50
LEADERSHIP_LOST = '"msg":"leadership lost"'
_FINISHED = ("Succeeded", "Failed")
_DEFECTS = ("Traceback (most recent call last)", "sync failed", "Task exception was never retrieved", "was never awaited")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a row lets differ from the faultless run, each with its reason in the row.

    Attributes:
        exits: Exit codes with which the operator may end by itself, beside those that a lost lease explains.
        effects: Meanings whose number of effective writes may differ.
        requests_a_second: More requests than usual.
    """

    exits: frozenset[int] = frozenset()
    effects: frozenset[str] = frozenset()
    requests_a_second: int = MOST_REQUESTS_A_SECOND


NOTHING_DIFFERS = Allowance()


@dataclass(frozen=True, slots=True)
class Reference:
    """What the faultless run of a life came to."""

    state: State
    effects: Counter[str] = field(default_factory=Counter[str])


async def complaints(run: Run, reference: Reference, allowance: Allowance) -> list[str]:
    """Return what is wrong with a run that has come to rest; an empty list is a pass."""
    found = difference(reference.state, await run.state())
    found += miscounts(run.proxy.trace, reference, allowance)
    found += relapses(run.proxy.trace)
    found += await _bystanders(run)
    found += await _processes(run, allowance)
    if (most := run.proxy.trace.most_in_a_second()) > allowance.requests_a_second:
        found.append(f"{most} requests within one second")
    return found


def miscounts(trace: Trace, reference: Reference, allowance: Allowance) -> Iterator[str]:
    """Yield writes that took effect too often or too rarely, a second launcher Job, and changes of the SSH Secret."""
    have = trace.effects("create", "delete")
    for meaning in sorted(have.keys() | reference.effects.keys()):
        if have[meaning] != reference.effects[meaning] and meaning not in allowance.effects:
            yield f"{meaning}: took effect {have[meaning]} times instead of {reference.effects[meaning]}"
    launchers = 0
    for entry in trace.entries:
        verb, resource, subresource = entry.target.meaning.verb, entry.target.meaning.resource, entry.target.meaning.subresource
        if not entry.took_effect:
            continue
        if resource == "jobs" and not subresource:
            launchers += {"create": 1, "delete": -1}.get(verb, 0)
            if launchers > 1:
                yield "two launcher Jobs at a time"
        if resource == "secrets" and verb != "create":
            yield f"an SSH Secret was changed: {entry}"


def relapses(trace: Trace) -> Iterator[str]:
    """Yield statuses that went back from an end."""
    finished: dict[str, str] = {}
    for answer in trace.statuses():
        now = {each["type"]: each["status"] for each in answer["status"].get("conditions") or ()}
        ended = next((type_ for type_ in _FINISHED if now.get(type_) == "True"), "")
        before = finished.setdefault(answer["uid"], ended)
        if before and (ended != before or now.get("Running") == "True"):
            yield f"status went back from {before} to {now}"
        finished[answer["uid"]] = ended or before


async def _bystanders(run: Run) -> list[str]:
    changed = []
    resources = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS, "Pod": PODS}
    for before in run.bystanders:
        now = await run.ground.client.get(resources[before.get("kind", "")], key_of(before))
        # The driver's kubelet leaves them alone, so whoever changed them is the operator.
        if (uid_of(now), resource_version_of(now)) != (uid_of(before), resource_version_of(before)) or is_terminating(now):
            changed.append(f"somebody else's {before.get('kind')} was touched")
    return changed


async def _processes(run: Run, allowance: Allowance) -> list[str]:
    found = []
    secrets = await _secret_bytes(run)
    for replica in run.replicas:
        log = replica.log.read_text(encoding="utf-8", errors="replace") if replica.log.exists() else ""
        # A lease of 2 s is lost when this machine has no time for a second and a half. That is safe, and what safe means is judged above.
        lost = log.count(LEADERSHIP_LOST)
        unexplained = [code for code in replica.exits if code not in allowance.exits]
        if len([code for code in unexplained if code == 1]) > lost or any(code != 1 for code in unexplained):
            found.append(f"{replica.log.name}: the process ended with {unexplained}, {lost} times for a lost lease")
        found += [f"{replica.log.name}: {defect}" for defect in _DEFECTS if defect in log]
        found += [f"{replica.log.name}: secret bytes are in the log" for secret in secrets if secret in log]
    return found


async def _secret_bytes(run: Run) -> list[str]:
    """Return what no log may hold: lines of the private key, its base64 form, and the token's signature."""
    forbidden = ["PRIVATE KEY", run.ground.token.rpartition(".")[2]]
    try:
        secret = await run.ground.client.get(SECRETS, Key(run.namespace, f"{JOB}-ssh"))
    except StatusError:
        return forbidden
    data: Mapping[str, Any] = secret.get("data") or {}
    key = data["ssh-privatekey"]
    return [*forbidden, key[80:120], base64.b64decode(key).decode().splitlines()[2][:40]]
