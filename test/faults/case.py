"""One case: a life of a job under one fault, judged against the same life without."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from faults.disturbance import Disturbance
from faults.fork_server import MPIOP
from faults.lifecycles import LIFECYCLES
from faults.oracle import NOTHING_DIFFERS, Allowance, Reference, complaints
from faults.plans import Faults, Several
from faults.run import Action, NotSeenError, Run, new_run
from faults.state import State, difference
from faults.testbed import FaultTestbed
from faults.trace import Trace
from mpiop.kube.errors import KubeError

CASE_SECONDS = 120.0
"""A case takes 4 s; on a machine that has no time for the lease the operator may have to begin a few times."""
QUIET_SECONDS = 2.0
"""After the reference run: what the operator does without being asked would show by then."""
SETTLED_SECONDS = 0.5

Script = Callable[[Run], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Case:
    """A case.

    Attributes:
        row: Number of the row of the fault matrix, for example F13.
        life: A key of `LIVES`; of a case with an `own` life only a name.
        what: The rest of its name: target and fault.
        plan: Makes the faults of a run.
        allowance: What may differ.
        seconds: How long it may take on a machine that is not busy.
        replicas: How many replicas run.
        stages: What is done at stages of the life, which waits for it.
        script: Runs next to the life: what signals or the driver do.
        environment: More environment variables of the operator.
        module: What is run as the operator.
        has_leases_apart: Whether each replica has a lease of its own, so that all of them lead.
        check: What must hold next to the oracle.
        wants_hit: Whether a run in which the fault met nothing counts as not reached.
        disturbance: What is done to the server, so that nothing else may run next to it but what is to live through the same.
        own: Is lived instead where no life without the fault can be compared; it reports itself what is wrong (`Run.findings`).
    """

    row: str
    lifecycle: str
    what: str
    plan: Callable[[Run], Faults | Several] = field(default=lambda _run: Faults(), repr=False)
    allowance: Allowance = NOTHING_DIFFERS
    seconds: float = CASE_SECONDS
    replicas: int = 1
    stages: tuple[tuple[str, Action], ...] = field(default=(), repr=False)
    script: Script | None = field(default=None, repr=False)
    environment: tuple[tuple[str, str], ...] = ()
    module: str = MPIOP
    has_leases_apart: bool = False
    check: Callable[[Run], list[str]] | None = field(default=None, repr=False)
    wants_hit: bool = True
    disturbance: Disturbance | None = field(default=None, repr=False)
    own: Action | None = field(default=None, repr=False)

    @property
    def is_idle(self) -> bool:
        """Return whether it waits for most of its time."""
        return self.seconds > CASE_SECONDS

    @property
    def name(self) -> str:
        """Return what it is called, and by which it is repeated."""
        return f"{self.row}/{self.lifecycle}/{self.what}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case ended; no complaints and not reached means that the request did not come in this run."""

    name: str
    complaints: list[str]
    trace: Trace
    was_reached: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Faultless:
    """A life without faults: what it came to, and every request in it."""

    reference: Reference
    trace: Trace


async def run_faultless(testbed: FaultTestbed, namespace: str, lifecycle: str) -> Faultless:
    """Return the result of the life.

    Raises:
        NotSeenError: It did not come to its end.
    """
    async with new_run(testbed, namespace, Faults(), CASE_SECONDS * testbed.patience) as run:
        await run.launch().start()
        await LIFECYCLES[lifecycle](run)
        await _until_unchanged(run)
        reference = Reference(await run.state(), run.proxy.trace.effects("create", "delete"))
        if wrong := await complaints(run, reference, NOTHING_DIFFERS):
            raise NotSeenError(f"{lifecycle} without faults: {'; '.join(wrong)}\n{run.proxy.trace}")
        return Faultless(reference, run.proxy.trace)


async def run_case(testbed: FaultTestbed, namespace: str, case: Case, reference: Reference | None) -> Verdict:
    """Run the case and judge it; `reference` is None for a case with an own life."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with new_run(testbed, namespace, Faults(), case.seconds * testbed.patience) as run:
        run.proxy.plan = plan = case.plan(run)
        run.stages = dict(case.stages)
        for number in range(case.replicas):
            name = "operator" if case.replicas == 1 else f"operator-{number}"
            flags = (f"--lease-name={name}",) if case.has_leases_apart else ()
            await run.launch(name, flags=flags, environment=dict(case.environment), module=case.module).start()
        try:
            wrong = await _play(run, case, reference, plan)
        except NotSeenError as error:
            wrong = [str(error), *await _judged(run, case, reference)]
        return Verdict(case.name, wrong, run.proxy.trace, plan.hits > 0 or not case.wants_hit, loop.time() - begun)


async def _play(run: Run, case: Case, reference: Reference | None, plan: Faults | Several) -> list[str]:
    script = asyncio.create_task(case.script(run)) if case.script else None
    try:
        await (case.own or LIFECYCLES[case.lifecycle])(run)
        if script is not None:
            await script
    finally:
        if script is not None:
            script.cancel()
            await asyncio.wait({script})
    for each in plan.plans if isinstance(plan, Several) else [plan]:
        each.is_over = True
    await run.until("the end of what is under way", lambda: _is_at_rest(run))
    if reference is not None:
        state = reference.state
        await run.until("the end state of the faultless run", lambda: _has_come_to(run, state, case.allowance))
    await asyncio.sleep(SETTLED_SECONDS)
    await run.until("/readyz to be well", lambda: _are_ready(run))
    return await _judged(run, case, reference)


async def _judged(run: Run, case: Case, reference: Reference | None) -> list[str]:
    own = case.check(run) if case.check else []
    try:
        return [*run.findings, *own, *await complaints(run, reference, case.allowance)]
    except KubeError as error:
        return [f"the API server does not answer the driver: {error}"]


async def _is_at_rest(run: Run) -> bool:
    return run.proxy.under_way == 0


async def _has_come_to(run: Run, state: State, allowance: Allowance) -> bool:
    return not difference(state, await run.state(), but=allowance.objects)


async def _are_ready(run: Run) -> bool:
    return all([await replica.is_ready() for replica in run.replicas])


async def _until_unchanged(run: Run) -> None:
    before: State = {}
    for _ in range(20):
        with contextlib.suppress(KubeError):
            now = await run.state()
            if not difference(before, now):
                return
            before = now
        await asyncio.sleep(QUIET_SECONDS)
    raise NotSeenError("the faultless run did not come to rest")
