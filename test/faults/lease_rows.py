"""Rows about the lease: robbed, paused, doubled, out of reach, spoiled, handed on."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from faults.case import Case, Script
from faults.enumeration import ENDING, Act, Lifecycles, at_condition, effects_of_a_late_write, is_write_of_jobs, targets, with_requests
from faults.lifecycles import until_condition
from faults.oracle import MOST_REQUESTS_A_SECOND, Allowance
from faults.plans import ALWAYS, Faults
from faults.proxy import Exchange, Fault
from faults.request_faults import CUT_BEFORE, HANG
from faults.rows import Row
from faults.run import LOOK_SECONDS, Run
from faults.trace import Entry, Trace
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import LEASES

TWICE_AS_MANY = Allowance(exits=frozenset({0}), requests_a_second=3 * MOST_REQUESTS_A_SECOND)
PAUSE_LEASES = 2
"""How long the leader is frozen, or the lease out of reach, in lease durations."""
BLIND_SECONDS = 14.0
"""For how long at most all but the lease is out of reach: readiness reports it after 10 s."""
KNOWN_SECONDS, LATE_SECONDS = 0.6, 0.5
"""A write is held for so long after its process knows of its loss; what comes that much later than the knowledge is one too many."""
THIEF = "thief"
_EVERYTHING_ELSE = frozenset({"configmaps", "events", "jobs", "mpijobs", "pods", "secrets", "services"})


def f40(lifecycles: Lifecycles) -> Iterator[Case]:
    """Somebody else takes the lease while each write is under way, and never renews it; the write ends after that is known."""
    for case in with_requests("F40", targets(lifecycles, is_write_of_jobs), [Act("lease-stolen", _steal_and_hold)]):
        yield replace(case, stages=ENDING, check=wrote_after_loss)


async def _steal_and_hold(run: Run, _exchange: Exchange) -> None:
    await _steal(run)
    for _ in range(int(run.testbed.lease_seconds / LOOK_SECONDS)):  # its watch of the lease shows the theft at once; a renewal would too
        if loss_of(run.proxy.trace):
            break
        await asyncio.sleep(LOOK_SECONDS)
    await asyncio.sleep(KNOWN_SECONDS)


def loss_of(trace: Trace) -> Entry | None:
    """Return the answer that informed the operator that somebody else has the lease."""
    reads = (entry for entry in trace.entries if entry.target.meaning.resource == "leases" and entry.target.meaning.verb == "get")
    return next((entry for entry in reads if entry.delivered and entry.answer.get("holder") == THIEF), None)


def wrote_after_loss(run: Run) -> list[str]:
    """Return what is wrong with how the loss was taken: not seen, seen too late, written after it, or survived."""
    trace, replica = run.proxy.trace, run.replicas[0]
    stolen_at = next((entry.at for entry in trace.entries if entry.fault), None)
    if stolen_at is None:
        return []
    latest = stolen_at + run.testbed.lease_seconds + LATE_SECONDS * run.testbed.patience
    ended_at = next((end for moment in replica.ends if (end := trace.since(moment)) > stolen_at), float("inf"))
    lost = loss_of(trace)
    # A process may end by its own deadline before it has looked, if it is slow.
    known_at = lost.delivered_at if lost is not None else ended_at
    found = [
        f"written after the loss of the lease was known: {entry}"
        for entry in trace.entries
        if entry.target.meaning.is_write and entry.target.meaning.resource != "leases" and known_at + LATE_SECONDS < entry.at < ended_at
    ]
    if ended_at > latest:
        found.append(f"lost its lease at {stolen_at:.1f} s and did not end by {latest:.1f} s, but at {ended_at:.1f} s")
    return found


async def _steal(run: Run) -> None:
    await _edit_lease(run, {"holderIdentity": THIEF})


async def _edit_lease(run: Run, spec: dict[str, Any]) -> None:
    await run.testbed.client.patch(LEASES, _lease(run), {"spec": spec})


def _lease(run: Run) -> Key:
    return Key(run.namespace, "mpi-operator")


def f41(lifecycles: Lifecycles) -> Iterator[Case]:
    """Two replicas lead at the same time."""
    for lifecycle in lifecycles:
        yield Case("F41", lifecycle, "two leaders", replicas=2, has_leases_apart=True, wants_hit=False, allowance=TWICE_AS_MANY)


def f42(lifecycles: Lifecycles) -> Iterator[Case]:
    """The leader is frozen in the middle of each write until a successor leads, then continues, and ends."""
    for case in with_requests("F42", targets(lifecycles, is_write_of_jobs), [Act("paused", _pause)], allowance=TWICE_AS_MANY):
        late = replace(TWICE_AS_MANY, effects=effects_of_a_late_write(case.what))
        yield replace(case, allowance=late, stages=ENDING, check=_survived_its_lease)


async def _pause(run: Run, _exchange: Exchange) -> None:
    run.replicas[0].signal(signal.SIGSTOP)
    await run.launch("successor").start()
    await asyncio.sleep(PAUSE_LEASES * run.testbed.lease_seconds)
    run.replicas[0].signal(signal.SIGCONT)


def _survived_its_lease(run: Run) -> list[str]:
    is_met = any(entry.fault for entry in run.proxy.trace.entries)
    return ["the process did not end, though its lease did"] if is_met and not run.replicas[0].exits else []


def f45(lifecycles: Lifecycles) -> Iterator[Case]:
    """The lease alone cannot be reached for a while; then everything but the lease."""
    for lifecycle in lifecycles:
        for name, fault in (("cut", CUT_BEFORE), ("hang", HANG)):
            yield Case(
                "F45",
                lifecycle,
                f"leases/{name}",
                _outage(frozenset({"leases"}), fault),
                stages=ENDING,
                script=_without_lease,
                check=_survived_its_lease,
                wants_hit=False,
            )
            yield Case(
                "F45", lifecycle, f"all but leases/{name}", _outage(_EVERYTHING_ELSE, fault), script=_with_lease_only, wants_hit=False
            )


def _outage(resources: frozenset[str], fault: Fault) -> Callable[[Run], Faults]:
    def plan(_run: Run) -> Faults:
        faults = Faults(resources=resources, requests=fault, times=ALWAYS)
        faults.is_over = True  # until the script begins it
        return faults

    return plan


async def _without_lease(run: Run) -> None:
    await until_condition(run, "Created")
    async with _cut_off(run):
        await asyncio.sleep(PAUSE_LEASES * run.testbed.lease_seconds)


async def _with_lease_only(run: Run) -> None:
    await until_condition(run, "Created")
    reported = False
    async with _cut_off(run):
        until = asyncio.get_running_loop().time() + BLIND_SECONDS * run.testbed.patience
        while not reported and asyncio.get_running_loop().time() < until:
            ready, live = await run.replicas[0].fetch("/readyz"), await run.replicas[0].fetch("/healthz")
            if live and not live.startswith("200 "):
                run.findings.append(f"/healthz without the API server: {live}")
            reported = "out of reach" in ready or "not synced" in ready
            await asyncio.sleep(0.5)
    if not reported:
        run.findings.append("/readyz reported nothing, though nothing but the lease was in reach for long")


@contextlib.asynccontextmanager
async def _cut_off(run: Run) -> AsyncIterator[None]:
    """Have the faults of the run for a while; watches that are open end at its beginning."""
    faults = run.proxy.plan
    assert isinstance(faults, Faults)
    faults.is_over = False
    run.proxy.cut_streams(faults.resources)
    try:
        yield
    finally:
        faults.is_over = True


def f46(lifecycles: Lifecycles) -> Iterator[Case]:
    """The lease is deleted, emptied, or somebody else's, while the job begins and while it runs."""
    for lifecycle in lifecycles:
        for condition in ("Created", "Running"):
            for name, action in (("deleted", _delete_lease), ("emptied", _empty_lease), ("stolen", _steal)):
                script: Script = at_condition(condition, action)
                yield Case("F46", lifecycle, f"lease {name} at {condition}", script=script, wants_hit=False)


async def _delete_lease(run: Run) -> None:
    lease = await run.testbed.client.get(LEASES, _lease(run))
    await run.testbed.client.delete(LEASES, _lease(run), uid=uid_of(lease))


async def _empty_lease(run: Run) -> None:
    await _edit_lease(run, {"holderIdentity": None, "renewTime": None, "acquireTime": None, "leaseTransitions": None})


def f47(lifecycles: Lifecycles) -> Iterator[Case]:
    """Three replicas are replaced one after another."""
    for lifecycle in lifecycles:
        script = at_condition("Created", _roll)
        yield Case("F47", lifecycle, "three replicas", replicas=3, script=script, wants_hit=False, allowance=TWICE_AS_MANY)


async def _roll(run: Run) -> None:
    for replica in run.replicas:
        replica.signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        await run.until("the new process to be ready", replica.is_ready)


LEASE_ROWS = (
    Row("F40", "lease taken by somebody else at each write", f40),
    Row("F41", "two leaders", f41),
    Row("F42", "leader frozen at each write for two lease durations", f42),
    Row("F45", "lease out of reach; all but the lease out of reach", f45),
    Row("F46", "lease deleted, emptied, foreign", f46),
    Row("F47", "three replicas replaced in turn", f47),
)
