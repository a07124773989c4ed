"""What must hold in every run, and at the end of it: the standing oracle."""

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from faults.run import Run
from faults.state import JOB, State, difference
from faults.trace import Trace
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, is_terminating, key_of, resource_version_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, PODS, SECRETS

# A whole life with suspend and resume takes a second here, and some 50 requests; a loop without a pause takes hundreds.
MOST_REQUESTS_A_SECOND = 100
LEADERSHIP_LOST = '"msg":"leadership lost"'
_FINISHED = ("Succeeded", "Failed")
_PUBLISHES_ADDRESSES = re.compile(r"patch pods/(pi-launcher-pod|j{54}-lau[a-z0-9]{5})")
"""To a launcher's pod; the Job controller cuts the name of that with the longest one."""
_TRACEBACK = "Traceback (most recent call last)"
_DEFECTS = (_TRACEBACK, "sync failed unexpectedly", "Task exception was never retrieved", "was never awaited")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a row lets differ from the faultless run, each with its reason in the row.

    Attributes:
        exits: Exit codes with which the operator may end by itself, in addition to those that a lost lease explains.
        objects: What may differ in the end, by its name in a `State`.
        effects: Meanings whose number of effective writes may differ.
        requests_a_second: More requests than usual.
        has_traceback: Whether the process may print a traceback.
    """

    exits: frozenset[int] = frozenset()
    objects: frozenset[str] = frozenset()
    effects: frozenset[str] = frozenset()
    requests_a_second: int = MOST_REQUESTS_A_SECOND
    has_traceback: bool = False


NOTHING_DIFFERS = Allowance()


@dataclass(frozen=True, slots=True)
class Reference:
    """What the faultless run of a life came to."""

    state: State
    effects: Counter[str] = field(default_factory=Counter[str])


async def complaints(run: Run, reference: Reference | None, allowance: Allowance) -> list[str]:
    """Return what is wrong with a run that has come to rest; an empty list is a pass. Without a reference there is less to see."""
    found: list[str] = []
    if reference is not None:
        found += difference(reference.state, await run.state(), but=allowance.objects)
        found += miscounts(run.proxy.trace, reference, allowance)
    found += relapses(run.proxy.trace)
    found += unguarded(run.proxy.trace)
    if len(run.replicas) == 1:  # one replica cannot know what was refused to another
        found += resent(run.proxy.trace, run.replicas[0].starts)
    found += await _bystanders(run)
    found += await _processes(run, allowance)
    if (most := run.proxy.trace.most_in_a_second()) > allowance.requests_a_second:
        found.append(f"{most} requests within one second")
    return found


def miscounts(trace: Trace, reference: Reference, allowance: Allowance) -> Iterator[str]:
    """Yield writes that took effect too often or too rarely, a second launcher Job, and changes of the SSH Secret."""
    have, unknown = trace.effects("create", "delete"), trace.unknown()
    for meaning in sorted(have.keys() | reference.effects.keys()):
        missing = reference.effects[meaning] - have[meaning]
        if missing and not 0 < missing <= unknown[meaning] and meaning not in allowance.effects:
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
        if "conditions" not in answer["status"]:
            continue
        now = {each["type"]: each["status"] for each in answer["status"]["conditions"]}
        ended = next((type_ for type_ in _FINISHED if now.get(type_) == "True"), "")
        before = finished.setdefault(answer["uid"], ended)
        if before and (ended != before or now.get("Running") == "True"):
            yield f"status went back from {before} to {now}"
        finished[answer["uid"]] = ended or before


def unguarded(trace: Trace) -> Iterator[str]:
    """Yield writes that could hit what nobody has read: deletions without a UID, changes without UID and version.

    An Event is changed by its name, which only its writer knows; addresses are published to a launcher's pod by its UID alone
    (`mpiop.controller.plan.diff.Patch.is_for_any_version`).
    """
    needed = {"delete": {"uid"}, "update": {"resourceVersion"}, "patch": {"uid", "resourceVersion"}}
    for entry in trace.entries:
        meaning = entry.target.meaning
        desired = {"uid"} if _PUBLISHES_ADDRESSES.fullmatch(str(meaning)) else needed.get(meaning.verb, set())
        if meaning.resource != "events" and (missing := desired - entry.asked.keys()):
            yield f"names no {' and no '.join(sorted(missing))}: {entry}"


def resent(trace: Trace, starts: Sequence[float]) -> Iterator[str]:
    """Yield patches that were sent again after the server had refused just them: after a conflict the object must be read again.

    Where that read has no answer either, only the watch reports what changed, and a patch that is sent before it does so is not a fault.

    Args:
        trace: What passed.
        starts: When a process began that cannot know of the conflicts before, by `time.monotonic`.
    """
    refused = defaultdict[tuple[str, str], set[tuple[str, ...]]](set)
    for entry in trace.entries:
        meaning = entry.target.meaning
        changes = refused[meaning.resource, meaning.name]
        if meaning.verb == "get" and not entry.delivered:
            changes.clear()
        if meaning.verb != "patch" or "resourceVersion" not in entry.asked:
            continue
        process = sum(trace.since(start) <= entry.at for start in starts)
        change = (str(process), meaning.subresource, entry.asked.get("uid", ""), entry.asked["resourceVersion"])
        if change in changes:
            yield f"sent again after a conflict: {entry}"
        if entry.code == HTTPStatus.CONFLICT and entry.delivered:
            changes.add(change)


async def _bystanders(run: Run) -> list[str]:
    changed = []
    resources = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS, "Pod": PODS}
    for before in run.bystanders:
        now = await run.testbed.client.get(resources[before.get("kind", "")], key_of(before))
        # The driver's kubelet leaves them alone, so only the operator can have changed them.
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
        found += [
            f"{replica.log.name}: {defect}"
            for defect in _DEFECTS
            if defect in log and not (allowance.has_traceback and defect == _TRACEBACK)
        ]
        found += [f"{replica.log.name}: secret bytes are in the log" for secret in secrets if secret in log]
    return found


async def _secret_bytes(run: Run) -> list[str]:
    """Return what no log may hold: lines of the private key, its base64 form, and the token's signature."""
    forbidden = ["PRIVATE KEY", run.testbed.token.rpartition(".")[2]]
    try:
        secret = await run.testbed.client.get(SECRETS, Key(run.namespace, f"{JOB}-ssh"))
    except StatusError:
        return forbidden
    data: Mapping[str, Any] = secret.get("data") or {}
    key = data["ssh-privatekey"]
    return [*forbidden, key[80:120], base64.b64decode(key).decode().splitlines()[2][:40]]
