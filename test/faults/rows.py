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


def f8(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each request is refused once as if the server were broken."""
    return with_requests("F8", targets(lifecycles, is_request), (refuse(500), refuse(503)))


def f9(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each request is asked to return later, once and ten times."""
    found = list(targets(lifecycles, is_request))
    yield from with_requests("F9", found, [refuse(429, 1)])
    writes = [(lifecycle, target) for lifecycle, target in found if target.meaning.is_write and target.ordinal == 1]
    yield from with_requests("F9", writes, [refuse(429, 1)], times=10)


def f10(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each request hangs; a watch that does not even begin is found by the idle timeout, which takes longer."""
    found = targets(lifecycles, lambda target: is_request(target) and target.meaning.verb != "watch")
    return with_requests("F10", found, [HANG])


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


def f12(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each write is cut off before the server sees it."""
    return with_requests("F12", targets(lifecycles, is_write), [CUT_BEFORE])


def f13(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each write takes effect, and its answer is lost."""
    return with_requests("F13", targets(lifecycles, is_write), (cut_after(reset=True), cut_after(reset=False)))


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


def f19(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each watch is cut after each event."""
    return with_events("F19", targets(lifecycles, is_event), (cut_stream("close"), cut_stream("reset")))


def f20(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each watch is cut in the middle of each event, inside a character where there is one."""
    return with_events("F20", targets(lifecycles, is_event), [CUT_LINE])


def f21(lifecycles: Lifecycles) -> Iterator[Case]:
    """Each watch ends with an ERROR event in place of its first events."""
    errors = [error_event(f"error-{code}", code=code, reason=REASONS[code]) for code in (410, 429, 500, 403)]
    found = targets(lifecycles, lambda target: is_event(target) and target.ordinal <= 2)
    return with_events("F21", found, [*errors, error_event("error-bare")])


def f32(lifecycles: Lifecycles) -> Iterator[Case]:
    """The operator is killed at each write: once it took effect, and once the answer was delivered too."""
    faults = [Act("killed-undelivered", _kill, "after"), Act("killed-delivered", _kill, "delivered")]
    return with_requests("F32", targets(lifecycles, is_write_of_jobs), faults, allowance=Allowance(exits=frozenset({-signal.SIGKILL})))


async def _kill(run: Run, _exchange: Exchange) -> None:
    for replica in run.replicas:
        replica.signal(signal.SIGKILL)


ENUMERATED = (
    Row("F8", "each request answered 500, 503", f8),
    Row("F9", "each request answered 429 with Retry-After, once; each write ten times", f9),
    Row("F10", "each request hangs", f10),
    Row("F11", "each update conflicts, made up and real", f11),
    Row("F12", "each write reset before the server sees it", f12),
    Row("F13", "each write takes effect, its answer is lost (RST, FIN)", f13),
    Row("F15", "each list garbled in five ways", f15),
    Row("F17", "each request answered 401; all for a while", f17),
    Row("F19", "each watch cut after each event (FIN, RST)", f19),
    Row("F20", "each watch cut inside each event", f20),
    Row("F21", "ERROR events 410, 429, 500, 403 and without a code", f21),
    Row("F32", "killed at each write, answer delivered or not", f32),
)
