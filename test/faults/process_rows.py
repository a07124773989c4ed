"""Rows about the operator's process, its credentials and its surroundings."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from faults import faulty_operator
from faults.case import Case
from faults.enumeration import ENDING, Act, Lifecycles, at_condition, is_write, is_write_of_jobs, targets, with_requests
from faults.fork_server import FAULTY
from faults.meaning import Meaning, Target
from faults.oracle import LEADERSHIP_LOST, Allowance
from faults.plans import ALWAYS, Faults
from faults.proxy import Exchange
from faults.request_faults import refuse, refuse_token
from faults.rows import Row
from faults.run import Run
from faults.testbed import new_token

STOPPED = Allowance(exits=frozenset({0}))
DIED = Allowance(exits=frozenset({1}), has_traceback=True)
SIGNAL_SECONDS = 0.3
SPOILED_SECONDS = 20.0
"""More than a run takes, unless a process ends."""
VICTIMS = ("server", "informers", "informer of pods", "events", "lease watch", "lease renewal", "worker 0", "watchdog")
"""What runs in the background, by the names of its tasks."""


def f33(lifecycles: Lifecycles) -> Iterator[Case]:
    """SIGTERM while each write is under way; the process ends with 0, and the next one continues."""
    faults = [Act("term-before", _terminate), Act("term-after", _terminate, "after")]
    return with_requests("F33", targets(lifecycles, is_write_of_jobs), faults, allowance=STOPPED)


async def _terminate(run: Run, _exchange: Exchange) -> None:
    run.replicas[0].signal(signal.SIGTERM)
    await asyncio.sleep(0.2)


def f34(lifecycles: Lifecycles) -> Iterator[Case]:
    """The event loop is blocked for longer than the lease lasts, while each write of a job that succeeds is under way."""
    found = [(lifecycle, target) for lifecycle, target in targets(lifecycles, is_write_of_jobs) if lifecycle == "succeed"]
    for case in with_requests("F34", found, [Act("blocked", _block)]):
        yield replace(case, module=FAULTY, stages=ENDING, check=_ended_blocked)


async def _block(run: Run, _exchange: Exchange) -> None:
    run.replicas[0].signal(signal.SIGUSR1)
    await asyncio.sleep(SIGNAL_SECONDS * run.testbed.patience)


def _ended_blocked(run: Run) -> list[str]:
    trace, replica = run.proxy.trace, run.replicas[0]
    begun = next((entry.at for entry in trace.entries if entry.fault), None)
    if begun is None:
        return []
    ended = trace.since(replica.ends[0]) if replica.ends else float("inf")
    log = replica.log.read_text(encoding="utf-8")
    found = [f"not in the log: {phrase}" for phrase in ("event loop is blocked", LEADERSHIP_LOST) if phrase not in log]
    found += [
        f"written by a leader that was blocked: {e}"
        for e in trace.entries
        if begun + SIGNAL_SECONDS * run.testbed.patience < e.at < ended and is_write(e.target)
    ]
    return found


def f36(_: Lifecycles) -> Iterator[Case]:
    """A background task dies while the job runs; the process ends with 1, and the next one continues."""
    for victim in VICTIMS:
        yield Case(
            "F36",
            "succeed",
            f"death of {victim}",
            stages=(("running", _doom),),
            module=FAULTY,
            environment=((faulty_operator.VICTIM, victim),),
            allowance=DIED,
            check=_died,
            wants_hit=False,
        )


async def _doom(run: Run) -> None:
    run.replicas[0].signal(signal.SIGUSR2)
    await asyncio.sleep(SIGNAL_SECONDS * run.testbed.patience)


def _died(run: Run) -> list[str]:
    exits = run.replicas[0].exits
    return [] if exits[:1] == [1] else [f"a part died and the process ended so: {exits or 'not at all'}"]


def f49(lifecycles: Lifecycles) -> Iterator[Case]:
    """The token is replaced, and the old one is refused from then on."""
    for lifecycle in lifecycles:
        yield Case("F49", lifecycle, "token rotated", _old_token, script=at_condition("Created", _rotate))


def _old_token(run: Run) -> Faults:
    faults = Faults(requests=refuse_token(run.testbed.token), times=ALWAYS)
    faults.is_over = True
    return faults


async def _rotate(run: Run) -> None:
    token = await new_token(run.testbed.client)
    path = run.replicas[0].token_file
    fresh = path.with_suffix(".new")
    fresh.write_text(token, encoding="ascii")
    fresh.replace(path)
    plan = run.proxy.plan
    assert isinstance(plan, Faults)
    plan.is_over = False


def f50(_: Lifecycles) -> Iterator[Case]:
    """The token file cannot be used at the moment when a 401 makes the operator read it again."""
    target = Target(Meaning("create", "pods", "", "pi-worker-0"))
    for name, content in (("missing", None), ("empty", ""), ("newline", "{}\n"), ("blank", "\n")):
        yield Case("F50", "succeed", f"{target}/token file {name}", _spoiled_token(target, content))


def _spoiled_token(target: Target, content: str | None) -> Callable[[Run], Faults]:
    def plan(run: Run) -> Faults:
        async def spoil(run: Run, exchange: Exchange) -> None:
            path = run.replicas[0].token_file
            path.unlink()
            if content is not None:
                path.write_text(content.format(run.testbed.token), encoding="ascii")
            await refuse(401).act(exchange)
            # A process that loses its lease meanwhile, for want of processor time, needs the token to start again.
            asyncio.get_running_loop().call_later(SPOILED_SECONDS, _restore, path, run.testbed.token)

        return Faults(target=target, requests=Act("401", spoil, "instead").on(run))

    return plan


def _restore(token_file: Path, token: str) -> None:
    if token_file.parent.exists():  # the run has not ended
        token_file.write_text(token, encoding="ascii")


def f52(lifecycles: Lifecycles) -> Iterator[Case]:
    """The environment names proxies that do not exist."""
    nowhere = "http://127.0.0.1:9"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    environment = tuple((name, nowhere) for name in names)
    for lifecycle in lifecycles:
        yield Case("F52", lifecycle, "proxies in the environment", environment=environment, wants_hit=False)


PROCESSES = (
    Row("F34", "event loop blocked at each write", f34),
    Row("F36", "each background task dies", f36),
    Row("F33", "SIGTERM at each write", f33),
    Row("F49", "token rotated, the old one refused", f49),
    Row("F50", "token file missing, empty, blank, with a newline", f50),
    Row("F52", "proxies in the environment", f52),
)
