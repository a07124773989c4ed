"""F24: an API server that is behind. What it reads from its cache is old, what it asks etcd for is not, and later it catches up.

Source: kubernetes 1.36, apiserver/pkg/storage/cacher: a list at version 0 is served from the cache as it is; one at no version, a get and a
write go to etcd; a list at a version that the cache has not reached is refused with 504; a watch waits until the cache gets there.
"""

import asyncio
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from faults.case import Case
from faults.enumeration import Lifecycles
from faults.meaning import FOLLOWED, Meaning
from faults.oracle import Allowance
from faults.plans import ALWAYS, Faults
from faults.proxy import Exchange, Fault
from faults.request_faults import answer_of, refuse
from faults.run import Action, Run
from faults.trace import Trace
from faults.wire import Message
from mpiop.kube.objects import ObjectList
from mpiop.kube.resources import MPIJOBS, Selection
from mpiop.operator import OURS

ACTING_SECONDS = 1.5
"""So long the new process acts on the old view."""
_STEPS = {
    "succeed": (("begin", "running"), ("created", "running"), ("running", "ended")),
    "fail": (("running", "ended"),),
    "suspend": (("running", "suspended"), ("suspended", "resumed")),
    "restart": (("running", "restarted"),),
}


@dataclass(slots=True)
class StaleServer:
    """What answers lists and watches in the server's stead.

    Attributes:
        expires: Whether the first watch of each resource gets the error that its version is gone, so that a list follows.
        lists: By resource, where the cache is frozen.
        has_caught_up: Set when watches end, to begin again at a server that has everything.
        expired: Resources whose watch got it.
    """

    expires: bool
    lists: dict[str, ObjectList] = field(default_factory=dict[str, ObjectList])
    has_caught_up: asyncio.Event = field(default_factory=asyncio.Event)
    expired: set[str] = field(default_factory=set[str])

    async def stand_still(self, run: Run) -> None:
        """Let the cache have what the server has now."""
        for name, resource in FOLLOWED.items():
            selection = Selection(resource, run.namespace, "" if resource is MPIJOBS else OURS)
            self.lists[name] = await run.testbed.client.list_page(selection, resource_version="")

    async def act(self, exchange: Exchange) -> None:
        """Answer from the cache, or pass on what does not ask it."""
        meaning = exchange.target.meaning
        if meaning.verb == "list" and meaning.resource in FOLLOWED:
            await self._list(exchange, self.lists[meaning.resource])
        elif meaning.verb == "watch":
            await self._watch(exchange)
        else:
            await exchange.pass_on()

    async def _list(self, exchange: Exchange, cached: ObjectList) -> None:
        desired = exchange.entry.asked.get("resourceVersion", "")
        if not desired:
            await exchange.pass_on()
        elif int(desired) <= int(cached["metadata"]["resourceVersion"]):
            exchange.entry.answer = {"resourceVersion": cached["metadata"]["resourceVersion"]}
            await exchange.deliver(answer_of(200, msgspec.json.encode({**cached, "items": list(cached["items"])})))
        else:
            await exchange.deliver(_too_large(desired, cached["metadata"]["resourceVersion"]))

    async def _watch(self, exchange: Exchange) -> None:
        resource = exchange.target.meaning.resource
        if "sendInitialEvents" in exchange.entry.asked:
            await refuse(400).act(exchange)
        elif self.expires and resource not in self.expired:
            self.expired.add(resource)
            await refuse(410).act(exchange)
        else:
            await exchange.begin_stream(Message("HTTP/1.1 200 OK", {"content-type": "application/json"}))
            waiting = {asyncio.create_task(self.has_caught_up.wait()), asyncio.create_task(exchange.until_client_leaves())}
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in waiting:
                    task.cancel()
            exchange.cut(reset=False)


def _too_large(desired: str, have: str) -> Message:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": 504,
        "reason": "Timeout",
        "message": f"Timeout: Too large resource version: {desired}, current: {have}",
        "details": {"causes": [cause], "retryAfterSeconds": 1},
    }
    return answer_of(504, msgspec.json.encode(body), retry_after="1")


def f24(lifecycles: Lifecycles) -> Iterator[Case]:
    """The operator meets a server at an earlier state: as a new process, or with the watches of an old one."""
    for lifecycle in lifecycles:
        for before, then in _STEPS[lifecycle]:
            for how in ("restarted", "reconnected", "expired"):
                yield _case(lifecycle, before, then, how)


def _case(lifecycle: str, before: str, then: str, how: str) -> Case:
    servers = dict[Run, StaleServer]()

    def plan(run: Run) -> Faults:
        servers[run] = StaleServer(expires=how == "expired")
        faults = Faults(resources=frozenset(FOLLOWED), requests=Fault("stale", servers[run].act), times=ALWAYS)
        faults.is_over = True  # until the life has come to where it is to begin
        return faults

    async def stand_still(run: Run) -> None:
        await servers[run].stand_still(run)

    async def travel(run: Run) -> None:
        await _travel(run, servers[run], is_new=how == "restarted")

    stages: tuple[tuple[str, Action], ...] = ((before, stand_still), (then, travel))
    # Its caches catch up one by one, so that for a moment it may see a job without its pods and take hosts out of discover_hosts.sh; when
    # the job ends in that moment, that stays so.
    allowance = Allowance(exits=frozenset({-signal.SIGKILL}), objects=frozenset({"configmaps/pi-config"}))
    return Case("F24", lifecycle, f"{how} at {then} as of {before}", plan, allowance, stages=stages, check=went_back)


async def _travel(run: Run, server: StaleServer, *, is_new: bool) -> None:
    plan = run.proxy.plan
    assert isinstance(plan, Faults)
    plan.is_over = False
    if is_new:
        begun = run.proxy.trace.now()
        run.replicas[0].signal(signal.SIGKILL)
        await run.until("the new process to lead", lambda: _leads(run, begun))
    else:
        run.proxy.cut_streams(FOLLOWED, reset=False)
    await asyncio.sleep(ACTING_SECONDS)
    plan.is_over = True
    server.has_caught_up.set()


async def _leads(run: Run, since: float) -> bool:
    return any(
        entry.at > since and entry.took_effect and entry.target.meaning == Meaning("update", "leases", "", "mpi-operator")
        for entry in run.proxy.trace.entries
    )


def went_back(run: Run) -> list[str]:
    """Return the lists and watches that asked for less than the process had seen already (invariant R1)."""
    found = list[str]()
    starts = [run.proxy.trace.since(moment) for moment in run.replicas[0].starts]
    for begun, ended in zip(starts, [*starts[1:], float("inf")], strict=True):
        found += _went_back(run.proxy.trace, begun, ended)
    return found


def _went_back(trace: Trace, begun: float, ended: float) -> Iterator[str]:
    seen = dict[str, int]()
    for entry in trace.entries:
        meaning = entry.target.meaning
        if not begun <= entry.at < ended or meaning.resource == "leases":
            continue
        asked = entry.asked.get("resourceVersion", "")
        if meaning.verb in {"list", "watch"} and asked and int(asked) < seen.get(meaning.resource, 0):
            yield f"asked for version {asked} after {seen[meaning.resource]} was seen: {entry}"
        # What was sent may not have been read when a stream was cut: what counts is what it has named, and lists that came whole.
        listed = entry.answer.get("resourceVersion", "") if meaning.verb == "list" and entry.delivered else ""
        seen[meaning.resource] = max(seen.get(meaning.resource, 0), int(asked or 0), int(listed or 0))
