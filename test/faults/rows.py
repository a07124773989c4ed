"""The rows of the fault matrix that the proxy enumerates: each a function from the faultless lives to cases."""

import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from faults.case import Case
from faults.enumeration import Act, Lifecycles, is_event, is_request, is_write, is_write_of_jobs, targets, with_events, with_requests
from faults.event_faults import CUT_LINE, cut_stream, error_event
from faults.meaning import FOLLOWED, Meaning, Target, object_name
from faults.oracle import Allowance
from faults.plans import Faults, Several
from faults.proxy import Exchange, Fault
from faults.request_faults import CUT_BEFORE, GARBLINGS, HANG, REASONS, cut_after, garble, refuse
from faults.run import Run
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the matrix: its number, what goes wrong, and the cases."""

    number: str
    title: str
    cases: Callable[[Lifecycles], Iterable[Case]]


def _is_no_watch(target: Target) -> bool:
    return is_request(target) and target.meaning.verb != "watch"


def f9(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each request is asked to return later, once and ten times."""
    found = list(targets(lifecycles, is_request))
    yield from with_requests("F9", found, [refuse(429, 1)])
    writes = [(lifecycle, target) for lifecycle, target in found if target.meaning.is_write and target.ordinal == 1]
    yield from with_requests("F9", writes, [refuse(429, 1)], times=10)


def f11(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each patch and update is answered with a conflict: one made up, and one that is real since the object was edited in between."""
    found = list(targets(lifecycles, lambda target: target.meaning.verb in {"patch", "update"} and target.meaning.resource != "events"))
    yield from with_requests("F11", found, [refuse(409)])
    edited = [(lifecycle, target) for lifecycle, target in found if target.meaning.resource in FOLLOWED]
    yield from with_requests("F11", edited, [Act("edited", _edit)])


async def _edit(run: Run, exchange: Exchange) -> None:
    """Change the object that the request is about to change, in the driver's name, unless it has just gone."""
    meaning = exchange.target.meaning
    body = {"metadata": {"annotations": {"example.org/edited": str(exchange.target.ordinal)}}}
    key = Key(run.namespace, object_name(exchange.request.first_line))
    try:
        await run.testbed.client.patch(FOLLOWED[meaning.resource], key, body)
    except StatusError as error:
        if not error.is_not_found:
            raise


def f15(_: Lifecycles) -> Iterator[Case]:
    """Each first list comes garbled; watch-lists are refused, so that there are lists."""
    for resource in FOLLOWED:
        for name in GARBLINGS:
            target = Target(Meaning("list", resource))
            yield Case("F15", "succeed", f"{target}/{name}", _garbled(target, garble(name)))


def _garbled(target: Target, fault: Fault) -> Callable[[Run], Several]:
    def plan(_run: Run) -> Several:
        refused = Faults(verbs=frozenset({"watch"}), resources=frozenset({target.meaning.resource}), requests=refuse(400))
        return Several([refused, Faults(target=target, requests=fault)])

    return plan


def f17(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each request is unauthorized once; and for two seconds all are."""
    yield from with_requests("F17", targets(lifecycles, is_request), [refuse(401)])
    for lifecycle in lifecycles:
        target = Target(Meaning("create", "pods", "", "pi-worker-0"))
        yield Case("F17", lifecycle, f"{target}/all-401", _all_unauthorized)


def _all_unauthorized(_run: Run) -> Faults:
    return Faults(resources=frozenset({*FOLLOWED, "secrets"}), requests=refuse(401), times=20)


async def _kill(run: Run, _exchange: Exchange) -> None:
    for replica in run.replicas:
        replica.signal(signal.SIGKILL)


ERRORS = [error_event(f"error-{code}", code=code, reason=REASONS[code]) for code in (410, 429, 500, 403)] + [error_event("error-bare")]
KILLS = (Act("killed-undelivered", _kill, "after"), Act("killed-delivered", _kill, "delivered"))
KILLED = Allowance(exits=frozenset({-signal.SIGKILL}))

ENUMERATED = (
    Row("F8", "each request answered 500, 503", lambda lives: with_requests("F8", targets(lives, is_request), (refuse(500), refuse(503)))),
    Row("F9", "each request answered 429 with Retry-After, once; each write ten times", f9),
    # A watch that does not even begin is found by the idle timeout, which takes longer.
    Row("F10", "each request hangs", lambda lives: with_requests("F10", targets(lives, _is_no_watch), [HANG])),
    Row("F11", "each update conflicts, made up and real", f11),
    Row("F12", "each write reset before the server sees it", lambda lives: with_requests("F12", targets(lives, is_write), [CUT_BEFORE])),
    Row(
        "F13",
        "each write takes effect, its answer is lost (RST, FIN)",
        lambda lives: with_requests("F13", targets(lives, is_write), (cut_after(reset=True), cut_after(reset=False))),
    ),
    Row("F15", "each list garbled in five ways", f15),
    Row("F17", "each request answered 401; all for a while", f17),
    Row(
        "F19",
        "each watch cut after each event (FIN, RST)",
        lambda lives: with_events("F19", targets(lives, is_event), (cut_stream("close"), cut_stream("reset"))),
    ),
    Row("F20", "each watch cut inside each event", lambda lives: with_events("F20", targets(lives, is_event), [CUT_LINE])),
    Row(
        "F21",
        "ERROR events 410, 429, 500, 403 and without a code",
        lambda lives: with_events("F21", targets(lives, lambda target: is_event(target) and target.ordinal <= 2), ERRORS),
    ),
    Row(
        "F32",
        "killed at each write, answer delivered or not",
        lambda lives: with_requests("F32", targets(lives, is_write_of_jobs), KILLS, allowance=KILLED),
    ),
)
