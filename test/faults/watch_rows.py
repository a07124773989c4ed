"""Rows about watches: refused, expired, idle, late, with gaps and doubles; and about writes that arrive late."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from faults.case import Case
from faults.enumeration import Lifecycles, effects_of_a_late_write, is_event, is_write_of_jobs, targets, with_events, with_requests
from faults.event_faults import DUPLICATE, GAP, IDLE, cut_stream, edit_bookmark, lag
from faults.meaning import FOLLOWED, Meaning, Target
from faults.oracle import Allowance
from faults.plans import ALWAYS, Faults, Several
from faults.proxy import Fault
from faults.request_faults import late, refuse
from faults.rows import Row
from faults.run import Run
from faults.stream import EventFault
from faults.time_travel import f24

IDLE_TIMEOUT_SECONDS, SLACK_SECONDS = 150.0, 15.0
STALE_SECONDS = 100.0
"""Twice what a watch with bookmarks may be idle, nearly."""


def f6(_: Lifecycles) -> Iterator[Case]:
    """Each watch is asked three times to return later, at its first and at its second beginning: it does, and nothing is listed."""
    for resource in FOLLOWED:
        for begin in (1, 2):
            target = Target(Meaning("watch", resource), begin)
            plan = _at_beginning(target, refuse(429, 1), times=3)
            yield Case("F6", "succeed", f"{target}/429-after-1 x3", plan, check=_listed_nothing)


def f7(_: Lifecycles) -> Iterator[Case]:
    """The second watch of each resource is answered 410, after the first was cut."""
    for resource in FOLLOWED:
        target = Target(Meaning("watch", resource), 2)
        yield Case("F7", "succeed", f"{target}/410", _at_beginning(target, refuse(410), times=1))


def _at_beginning(target: Target, fault: Fault, *, times: int) -> Callable[[Run], Several]:
    def plan(_run: Run) -> Several:
        cut = Faults(target=Target(Meaning("event", target.meaning.resource)), events=cut_stream("close"))
        plans = [Faults(target=target, requests=fault, times=times)]
        return Several([cut, *plans] if target.ordinal > 1 else plans)

    return plan


def _listed_nothing(run: Run) -> list[str]:
    return [f"a list was not needed: {entry}" for entry in run.proxy.trace.entries if entry.target.meaning.verb == "list"]


def f14(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each write reaches the server 30 s after the operator gave it up; a pod made this way is one too many, and taken away again."""
    for case in with_requests("F14", targets(lifecycles, is_write_of_jobs), [late()], seconds=150.0):
        yield replace(case, allowance=Allowance(effects=effects_of_a_late_write(case.what)))


def f22(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each watch goes idle without an end; it is given up after 150 s."""
    found = ((lifecycle, target) for lifecycle, target in targets(lifecycles, is_event) if target.ordinal == 1)
    for case in with_events("F22", found, [IDLE]):
        yield replace(case, seconds=260.0, script=_until_watched_again, check=_watched_in_time)


async def _until_watched_again(run: Run) -> None:
    """Wait until the metric reports the idle watch (an alert on it would fire), and then until it has an end."""

    async def is_reported() -> bool:
        idle = next((entry for entry in run.proxy.trace.entries if entry.fault), None)
        if idle is None:
            return False
        name = f'mpiop_informer_staleness_seconds{{informer="{idle.target.meaning.resource}"}} '
        lines = (await run.replicas[0].fetch("/metrics")).splitlines()
        return any(float(line.removeprefix(name)) > STALE_SECONDS for line in lines if line.startswith(name))

    async def is_over() -> bool:
        return _idle_seconds(run) is not None

    await run.until("the metric that reports the idle watch", is_reported)
    await run.until("the watch that is opened again", is_over)


def _idle_seconds(run: Run) -> float | None:
    """Return how long after the watch went idle its resource was watched again; None when it was not."""
    entries = run.proxy.trace.entries
    idle = next((entry for entry in entries if entry.fault), None)
    if idle is None:
        return None
    meaning = Meaning("watch", idle.target.meaning.resource)
    return next((entry.at - idle.at for entry in entries if entry.target.meaning == meaning and entry.at > idle.at), None)


def _watched_in_time(run: Run) -> list[str]:
    seconds = _idle_seconds(run)
    if seconds is not None and seconds < IDLE_TIMEOUT_SECONDS + SLACK_SECONDS * run.testbed.patience:
        return []
    return ["never watched again" if seconds is None else f"watched again only after {seconds:.0f} s idle"]


def f23(lifecycles: Lifecycles) -> Iterator[Case]:
    """One resource's watch lags behind the others."""
    for seconds in (5.0, 15.0):
        for resource in FOLLOWED:
            for lifecycle in lifecycles:
                plan = _all_events("event", [resource], lag(seconds))
                yield Case("F23", lifecycle, f"event {resource}/lag-{seconds:g}", plan, seconds=240.0)


def f26(_: Lifecycles) -> Iterator[Case]:
    """No bookmark reports that the initial events are over; lists are used after a minute."""
    for how in ("none", "plain", "false"):
        yield Case("F26", "succeed", f"bookmark/{how}", _all_events("bookmark", (), edit_bookmark(how)), seconds=180.0)


def f27(lifecycles: Lifecycles) -> Iterator[Case]:
    """Every event of a resource comes twice."""
    for resource in FOLLOWED:
        for lifecycle in lifecycles:
            yield Case("F27", lifecycle, f"event {resource}/duplicate", _all_events("event", [resource], DUPLICATE))


def _all_events(verb: str, resources: Iterable[str], fault: EventFault) -> Callable[[Run], Faults]:
    return lambda _run: Faults(verbs=frozenset({verb}), resources=frozenset(resources), events=fault, times=ALWAYS)


WATCHES = (
    Row("F6", "each watch answered 429 with Retry-After three times", f6),
    Row("F7", "each watch answered 410 when it begins again", f7),
    Row("F14", "each write reaches the server 30 s late", f14),
    Row("F22", "each watch goes idle", f22),
    Row("F23", "the watch of one resource lags 5 s and 15 s", f23),
    Row("F24", "reconnected to an API server that is behind, as an old and as a new process", f24),
    # Only the list that follows shows what became of things.
    Row("F25", "a second of events is never seen, from each event on", lambda lives: with_events("F25", targets(lives, is_event), [GAP])),
    Row("F26", "no bookmarks, or without their annotation, or with another", f26),
    Row("F27", "every event of a resource twice", f27),
)
