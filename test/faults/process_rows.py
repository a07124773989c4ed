"""Rows about the operator's processes and their lease: stopped in order, paused, robbed, doubled; and about their credentials."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from faults.case import Case, Script
from faults.enumeration import Act, Lives, is_write_of_jobs, targets, with_requests
from faults.ground import new_token
from faults.lives import until_condition
from faults.meaning import Meaning, Target
from faults.oracle import MOST_REQUESTS_A_SECOND, Allowance
from faults.plans import ALWAYS, Faults, Several
from faults.proxy import Exchange
from faults.request_faults import CutBefore, Hang, Refuse, RefuseToken
from faults.rows import Row
from faults.run import Run
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import LEASES

STOPPED = Allowance(exits=frozenset({0}))
TWICE_AS_MANY = Allowance(exits=frozenset({0}), requests_a_second=3 * MOST_REQUESTS_A_SECOND)
PAUSE_LEASES = 2
"""How long the leader is frozen, in lease durations."""
_EVERYTHING_ELSE = frozenset({"configmaps", "events", "jobs", "mpijobs", "pods", "secrets", "services"})


def f33(lives: Lives) -> Iterator[Case]:
    """SIGTERM while each write is under way; the process ends with 0, and the next one goes on."""
    faults = [Act("term-before", _terminate), Act("term-after", _terminate, "after")]
    return with_requests("F33", targets(lives, is_write_of_jobs), faults, allowance=STOPPED)


async def _terminate(run: Run, exchange: Exchange) -> None:
    del exchange
    run.replicas[0].signal(signal.SIGTERM)
    await asyncio.sleep(0.2)


def f40(lives: Lives) -> Iterator[Case]:
    """Somebody else takes the lease while each write is under way, and never renews it."""
    return with_requests("F40", targets(lives, is_write_of_jobs), [Act("lease-stolen", _steal)])


async def _steal(run: Run, exchange: Exchange | None = None) -> None:
    del exchange
    await _edit_lease(run, {"holderIdentity": "thief"})


async def _edit_lease(run: Run, spec: dict[str, Any]) -> None:
    await run.ground.client.patch(LEASES, _lease(run), {"spec": spec})


def _lease(run: Run) -> Key:
    return Key(run.namespace, "mpi-operator")


def f41(lives: Lives) -> Iterator[Case]:
    """Two replicas lead at the same time."""
    for life in lives:
        yield Case("F41", life, "two leaders", replicas=2, has_leases_apart=True, wants_hit=False, allowance=TWICE_AS_MANY)


def f42(lives: Lives) -> Iterator[Case]:
    """The leader is frozen in the middle of each write until a successor leads, then goes on."""
    return with_requests("F42", targets(lives, is_write_of_jobs), [Act("paused", _pause)], allowance=TWICE_AS_MANY)


async def _pause(run: Run, exchange: Exchange) -> None:
    del exchange
    run.replicas[0].signal(signal.SIGSTOP)
    await run.launch("successor").start()
    await asyncio.sleep(PAUSE_LEASES * run.ground.lease_seconds)
    run.replicas[0].signal(signal.SIGCONT)


def f45(lives: Lives) -> Iterator[Case]:
    """The lease alone cannot be reached for a while; then everything but the lease."""
    for life in lives:
        for name, fault in (("cut", CutBefore()), ("hang", Hang())):
            for what, resources in (("leases", frozenset({"leases"})), ("all but leases", _EVERYTHING_ELSE)):
                yield Case("F45", life, f"{what}/{name}", _outage(resources, fault), script=_outage_script(), wants_hit=False)


def _outage(resources: frozenset[str], fault: CutBefore | Hang | Refuse) -> Callable[[Run], Faults]:
    def plan(_run: Run) -> Faults:
        faults = Faults(resources=resources, requests=fault, times=ALWAYS)
        faults.is_over = True  # until the script begins it
        return faults

    return plan


def _outage_script() -> Script:
    async def script(run: Run) -> None:
        await until_condition(run, "Created")
        async with _faults_of(run):
            await asyncio.sleep(PAUSE_LEASES * run.ground.lease_seconds)

    return script


@contextlib.asynccontextmanager
async def _faults_of(run: Run) -> AsyncIterator[None]:
    """Have the faults of the run for a while."""
    plan = run.proxy.plan
    assert isinstance(plan, Faults | Several)
    faults = plan if isinstance(plan, Faults) else plan.plans[-1]
    faults.is_over = False
    try:
        yield
    finally:
        faults.is_over = True


def f46(lives: Lives) -> Iterator[Case]:
    """The lease is deleted, emptied, or somebody else's, while the job begins and while it runs."""
    for life in lives:
        for condition in ("Created", "Running"):
            for name, action in (("deleted", _delete_lease), ("emptied", _empty_lease), ("stolen", _steal)):
                script = _script_at(condition, action)
                yield Case("F46", life, f"lease {name} at {condition}", script=script, wants_hit=False)


async def _delete_lease(run: Run) -> None:
    lease = await run.ground.client.get(LEASES, _lease(run))
    await run.ground.client.delete(LEASES, _lease(run), uid=uid_of(lease))


async def _empty_lease(run: Run) -> None:
    await _edit_lease(run, {"holderIdentity": None, "renewTime": None, "acquireTime": None, "leaseTransitions": None})


def _script_at(condition: str, action: Callable[[Run], Any]) -> Script:
    async def script(run: Run) -> None:
        await until_condition(run, condition)
        await action(run)

    return script


def f47(lives: Lives) -> Iterator[Case]:
    """Three replicas are replaced one after another."""
    for life in lives:
        script = _script_at("Created", _roll)
        yield Case("F47", life, "three replicas", replicas=3, script=script, wants_hit=False, allowance=TWICE_AS_MANY)


async def _roll(run: Run) -> None:
    for replica in run.replicas:
        replica.signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        await run.until("the new process to be ready", replica.is_ready)


def f49(lives: Lives) -> Iterator[Case]:
    """The token is replaced, and the old one is refused from then on."""
    for life in lives:
        yield Case("F49", life, "token rotated", _old_token, script=_script_at("Created", _rotate))


def _old_token(run: Run) -> Faults:
    faults = Faults(requests=RefuseToken(run.ground.token), times=ALWAYS)
    faults.is_over = True
    return faults


async def _rotate(run: Run) -> None:
    token = await new_token(run.ground.client)
    path = run.replicas[0].token_file
    fresh = path.with_suffix(".new")
    fresh.write_text(token, encoding="ascii")
    fresh.replace(path)
    plan = run.proxy.plan
    assert isinstance(plan, Faults)
    plan.is_over = False


def f50(lives: Lives) -> Iterator[Case]:
    """The token file cannot be used at the moment when a 401 makes the operator read it again."""
    del lives
    target = Target(Meaning("create", "pods", "", "pi-worker-0"))
    for name, content in (("missing", None), ("empty", ""), ("newline", "{}\n"), ("blank", "\n")):
        yield Case("F50", "succeed", f"{target}/token file {name}", _spoiled_token(target, content))


def _spoiled_token(target: Target, content: str | None) -> Callable[[Run], Faults]:
    def plan(run: Run) -> Faults:
        async def spoil(run: Run, exchange: Exchange) -> None:
            path = run.replicas[0].token_file
            path.unlink()
            if content is not None:
                path.write_text(content.format(run.ground.token), encoding="ascii")
            await Refuse(401).act(exchange)

        return Faults(target=target, requests=Act("401", spoil, "instead").on(run))

    return plan


def f52(lives: Lives) -> Iterator[Case]:
    """The environment names proxies that do not exist."""
    nowhere = "http://127.0.0.1:9"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    environment = tuple((name, nowhere) for name in names)
    for life in lives:
        yield Case("F52", life, "proxies in the environment", environment=environment, wants_hit=False)


PROCESSES = (
    Row("F33", "SIGTERM at each write", f33),
    Row("F40", "lease taken by somebody else at each write", f40),
    Row("F41", "two leaders", f41),
    Row("F42", "leader frozen at each write for two lease durations", f42),
    Row("F45", "lease out of reach; all but the lease out of reach", f45),
    Row("F46", "lease deleted, emptied, foreign", f46),
    Row("F47", "three replicas replaced in turn", f47),
    Row("F49", "token rotated, the old one refused", f49),
    Row("F50", "token file missing, empty, blank, with a newline", f50),
    Row("F52", "proxies in the environment", f52),
)
