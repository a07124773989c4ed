"""Which requests and events a life has, and the cases that a fault makes of each."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from faults.case import CASE_SECONDS, Case, Faultless, Script
from faults.lifecycles import until_condition
from faults.meaning import Target
from faults.oracle import NOTHING_DIFFERS, Allowance
from faults.plans import Faults
from faults.proxy import Exchange, Fault
from faults.run import Action, Run
from faults.stream import EventFault

Lifecycles = Mapping[str, Faultless]
MOST_LEASES = 3
MOST_EVENTS = 12
Wanted = Callable[[Target], bool]


@dataclass(frozen=True, slots=True)
class Act:
    """A fault in which the driver does something to the run: kill the operator, edit an object.

    Attributes:
        name: What it is called.
        action: What is done.
        when: `before` asking the server, `after` it but before the answer is delivered, once it is `delivered`, or `instead` of all that.
    """

    name: str
    action: Callable[[Run, Exchange], Awaitable[None]]
    when: str = "before"

    def on(self, run: Run) -> Fault:
        """Return the fault for `run`: the action at its time; the request goes through otherwise."""

        async def act(exchange: Exchange) -> None:
            if self.when in {"before", "instead"}:
                await self.action(run, exchange)
                if self.when == "before":
                    await exchange.pass_on()
                return
            answer = await exchange.forward()
            if self.when == "after":
                await self.action(run, exchange)
            await exchange.deliver(answer)
            if self.when == "delivered":
                await self.action(run, exchange)

        return Fault(self.name, act)


def targets(lifecycles: Lifecycles, is_desired: Wanted) -> Iterator[tuple[str, Target]]:
    """Yield each request or event of the lives once, with the first life that has it; of the endless renewals the first few."""
    seen = set[Target]()
    for lifecycle, faultless in lifecycles.items():
        for entry in faultless.trace.entries:
            target = entry.target
            if target in seen or not is_desired(target):
                continue
            seen.add(target)
            if target.meaning.resource == "leases" and target.meaning.verb == "update" and target.ordinal > MOST_LEASES:
                continue
            yield lifecycle, target


def is_request(target: Target) -> bool:
    """Return whether it is a request, a watch's beginning included."""
    return target.meaning.verb != "event"


def is_write(target: Target) -> bool:
    return target.meaning.is_write


def is_write_of_jobs(target: Target) -> bool:
    """Return whether it is a write that a sync makes: no lease, no Event."""
    return target.meaning.is_write and target.meaning.resource not in {"leases", "events"}


def is_event(target: Target) -> bool:
    """Return whether it is an event of a watch of jobs or their children."""
    return target.meaning.verb == "event" and target.meaning.resource != "leases" and target.ordinal <= MOST_EVENTS


def effects_of_a_late_write(request: str) -> frozenset[str]:
    """Return what may be done once more when `request` (`create pods/pi-worker-0 #1`) reaches the server late.

    The worker of a job that has ended meanwhile is one pod too many, and taken away again.
    """
    verb, _, what = request.partition(" #")[0].partition(" ")
    return frozenset({f"create {what}", f"delete {what}"}) if verb == "create" and what.startswith("pods/") else frozenset()


def with_requests(
    row: str,
    found: Iterable[tuple[str, Target]],
    faults: Iterable[Fault | Act],
    *,
    times: int = 1,
    allowance: Allowance = NOTHING_DIFFERS,
    seconds: float = CASE_SECONDS,
) -> Iterator[Case]:
    """Yield a case for each request and fault."""
    chosen = list(faults)
    for lifecycle, target in found:
        for fault in chosen:
            suffix = f" x{times}" if times > 1 else ""
            yield Case(row, lifecycle, f"{target}/{fault.name}{suffix}", _request_plan(target, fault, times), allowance, seconds)


def with_events(row: str, found: Iterable[tuple[str, Target]], faults: Iterable[EventFault]) -> Iterator[Case]:
    """Yield a case for each event and fault."""
    chosen = list(faults)
    for lifecycle, target in found:
        for fault in chosen:
            yield Case(row, lifecycle, f"{target}/{fault.name}", _event_plan(target, fault))


def at_condition(type_: str, action: Action) -> Script:
    """Return a script that does something once the job has a condition, next to its life."""

    async def script(run: Run) -> None:
        await until_condition(run, type_)
        await action(run)

    return script


async def until_process_ends(run: Run) -> None:
    """Wait until the first replica's process has ended, if the fault was met: a job may come to its end before that."""

    async def has_ended() -> bool:
        return bool(run.replicas[0].ends) or not any(entry.fault for entry in run.proxy.trace.entries)

    await run.until("the end of the process", has_ended)


ENDING: tuple[tuple[str, Action], ...] = (("ended", until_process_ends),)
"""Stages of a case in which the process has to end."""


def _request_plan(target: Target, fault: Fault | Act, times: int) -> Callable[[Run], Faults]:
    return lambda run: Faults(target=target, requests=fault.on(run) if isinstance(fault, Act) else fault, times=times)


def _event_plan(target: Target, fault: EventFault) -> Callable[[Run], Faults]:
    return lambda _run: Faults(target=target, events=fault)
