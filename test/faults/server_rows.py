"""Rows about the server as a whole: restarted, killed, frozen. Nothing else runs beside these."""

import asyncio
from collections.abc import Iterator, Sequence

from faults.case import Case, Script
from faults.enumeration import Lives
from faults.ground import command
from faults.lives import until_condition
from faults.rows import Row
from faults.run import Run

Step = tuple[str, ...] | float
_API_SERVER = "kube-apiserver"


def f1(lives: Lives) -> Iterator[Case]:
    """The API server is restarted in order."""
    return _cases("F1", lives, {"restart": [("restart", _API_SERVER)]})


def f2(lives: Lives) -> Iterator[Case]:
    """The API server is killed and stays away."""
    away: dict[str, Sequence[Step]] = {
        f"away-{seconds:g}": [("stop", _API_SERVER, "--kill"), seconds, ("start", _API_SERVER)] for seconds in (10.0, 60.0)
    }
    return _cases("F2", lives, away)


def f3(lives: Lives) -> Iterator[Case]:
    """The store of the API server stalls."""
    stalls: dict[str, Sequence[Step]] = {
        f"etcd-stalls-{seconds:g}": [("pause", "etcd"), seconds, ("resume", "etcd")] for seconds in (5.0, 20.0)
    }
    return _cases("F3", lives, stalls)


def f4(lives: Lives) -> Iterator[Case]:
    """The store of the API server is killed and started again."""
    return _cases("F4", lives, {"etcd-killed": [("restart", "etcd", "--kill")]})


def _cases(row: str, lives: Lives, faults: dict[str, Sequence[Step]]) -> Iterator[Case]:
    for life in lives:
        for name, steps in faults.items():
            for condition in ("Created", "Running"):
                what = f"{name} at {condition}"
                yield Case(row, life, what, script=_script(condition, steps), seconds=200.0, wants_hit=False, on_server=True)


def _script(condition: str, steps: Sequence[Step]) -> Script:
    async def script(run: Run) -> None:
        await until_condition(run, condition)
        for step in steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                await run.ground.control(*step)
        # Controllers that lost their own leases have ended; the job needs them.
        await command("hack/cluster", "up", "--name", run.ground.cluster, "--control-plane-only")

    return script


SERVERS = (
    Row("F1", "API server restarted", f1),
    Row("F2", "API server killed, away for 10 s and 60 s", f2),
    Row("F3", "etcd stalls 5 s and 20 s", f3),
    Row("F4", "etcd killed and back", f4),
)
