"""Rows about the server as a whole: restarted, killed, frozen. Nothing else runs next to these."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from faults.case import Case
from faults.disturbance import Disturbance, Step
from faults.enumeration import Act, Lifecycles
from faults.meaning import Meaning, Target
from faults.plans import Faults
from faults.proxy import Exchange
from faults.rows import Row
from faults.run import NotSeenError, Run

_API_SERVER = "kube-apiserver"
_SECONDS = 300.0
_FIRST_POD = Target(Meaning("create", "pods", "", "pi-worker-0"))


def f2(lifecycles: Lifecycles) -> Iterator[Case]:
    """The API server is killed and stays away."""
    for seconds in (10.0, 60.0):
        steps: list[Step] = [("stop", _API_SERVER, "--kill"), seconds, ("start", _API_SERVER)]
        yield from _cases("F2", lifecycles, f"away-{seconds:g}", steps, check=_has_ended)


def f3(lifecycles: Lifecycles) -> Iterator[Case]:
    """The store of the API server stalls."""
    for seconds in (5.0, 20.0, 60.0):
        yield from _cases("F3", lifecycles, f"etcd-stalls-{seconds:g}", [("pause", "etcd"), seconds, ("resume", "etcd")])


def _has_ended(run: Run) -> list[str]:
    """Return a complaint if no process ended though its lease could not be renewed."""
    return [] if run.replicas[0].exits else ["the process did not end, though it could not renew its lease"]


def _cases(
    row: str, lifecycles: Lifecycles, name: str, steps: Sequence[Step], check: Callable[[Run], list[str]] | None = None
) -> Iterator[Case]:
    """Yield a case for each life and stage: one disturbance for all of them together."""
    together = Disturbance(steps)
    for lifecycle in lifecycles:
        case = Case(row, lifecycle, name, script=together.live_through, check=check, seconds=_SECONDS, disturbance=together)
        yield replace(case, what=f"{name} at running", stages=(("running", together.meet),), wants_hit=False)
        begin = (("begin", together.wait_to_start),)
        yield replace(case, what=f"{name} at {_FIRST_POD}", stages=begin, plan=_meeting(together))


def _meeting(together: Disturbance) -> Callable[[Run], Faults]:
    """Hold the first pod's creation until the server is disturbed, then send it there."""

    def plan(run: Run) -> Faults:
        async def meet(run: Run, _exchange: Exchange) -> None:
            try:
                await together.meet(run)
            except NotSeenError as error:
                run.findings.append(str(error))

        return Faults(target=_FIRST_POD, requests=Act("held", meet).on(run))

    return plan


SERVERS = (
    Row("F1", "API server restarted", lambda lives: _cases("F1", lives, "restarted", [("stop", _API_SERVER), ("start", _API_SERVER)])),
    Row("F2", "API server killed, away for 10 s and 60 s", f2),
    Row("F3", "etcd stalls for 5 s, 20 s and 60 s", f3),
    Row("F4", "etcd killed and back", lambda lives: _cases("F4", lives, "etcd-killed", [("stop", "etcd", "--kill"), ("start", "etcd")])),
)
