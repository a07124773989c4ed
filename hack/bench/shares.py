"""What the processor time that mpiop uses for a burst of jobs is made of: watching alone, requests alone, and the rest.

A standby watches as the leader does, and writes nothing. Who only sends the leader's requests watches nothing and decides nothing.
"""

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, Final

from bench.bench_cluster import BenchCluster
from bench.loads import Load, loaded
from bench.objects import children, mpijob
from bench.operator_process import ours
from bench.results import OURS, REFERENCE, Sample
from bench.scenarios import Scenario
from bench.session import Setting, Turn, operator_at, standing_by
from bench.stock import status_of
from embedded.progress import Step
from mpiop.kube.objects import key_of, uid_of
from mpiop.kube.resources import MPIJOBS, PODS
from mpiop.kube.transport import DEFAULTS

NAMESPACE: Final = "requests"


@contextlib.asynccontextmanager
async def turns(setting: Setting) -> AsyncIterator[Mapping[str, Turn]]:
    """Yield the turns of each operator."""
    yield {REFERENCE: partial(_reference, setting), OURS: partial(_ours, setting)}


async def _reference(setting: Setting, step: Step) -> Sample:
    async with setting.bench_cluster() as here, operator_at(here, REFERENCE) as operator:
        load = await loaded(here, setting.scenario, operator, step)
    return {"CPU a job": _a_job(load.cpu_seconds, setting.scenario)}


async def _ours(setting: Setting, step: Step) -> Sample:
    scenario = setting.scenario
    async with setting.bench_cluster() as here:
        async with operator_at(here, OURS) as operator, standing_by(here, ours()) as standby:
            before = standby.cpu_seconds()
            load = await loaded(here, scenario, operator, step)
            await standby.until_quiet()
            watching = standby.cpu_seconds() - before
        step.now_left("the requests alone")
        sending = await _sent_alone(here, scenario, load)
    return {name: _a_job(used, scenario) for name, used in (("CPU a job", load.cpu_seconds), ("watching", watching), ("sending", sending))}


def _a_job(cpu_seconds: float, scenario: Scenario) -> float:
    return 1000 * cpu_seconds / scenario.jobs


async def _sent_alone(here: BenchCluster, scenario: Scenario, load: Load) -> float:
    """Send as many requests as the operator did, patches for what neither creates nor deletes, and return this process's time."""
    await here.make_namespace(NAMESPACE)
    async with here.client_of(DEFAULTS.most_in_flight) as client:
        jobs = await asyncio.gather(*(client.create(MPIJOBS, mpijob(scenario, NAMESPACE, number)) for number in range(scenario.jobs)))
        made = [child for job in jobs for child in children(job)]
        workers = scenario.jobs * scenario.workers
        patches = sum(load.requests.values()) - len(made) - workers
        gc.freeze()  # as the operator does when it starts
        begun = time.process_time()
        stored = await asyncio.gather(*(client.create(child.resource, child.body) for child in made))
        status: Any = {"status": status_of(is_ended=False)}
        patched = (key_of(jobs[number % len(jobs)]) for number in range(patches))
        await asyncio.gather(*(client.patch(MPIJOBS, key, status, subresource="status") for key in patched))
        pods = [each for each in stored if each.get("kind") == PODS.kind]
        await asyncio.gather(*(client.delete(PODS, key_of(pod), uid=uid_of(pod)) for pod in pods))
        return time.process_time() - begun
