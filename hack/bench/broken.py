"""Jobs that cannot start: what an operator spends on them in their first two minutes."""

import asyncio
from typing import Final

from bench.objects import mpijob
from bench.results import Sample
from bench.session import NAMESPACE, Setting, operator_at
from embedded.progress import Step
from mpiop.kube.resources import MPIJOBS

MEASURED_SECONDS: Final = 120.0


async def turn(setting: Setting, who: str, step: Step) -> Sample:
    """Measure an operator in a new cluster."""
    jobs = setting.scenario.jobs
    step.now_left("a cluster")
    async with setting.bench_cluster(has_audit=True) as here:
        await here.make_namespace(NAMESPACE)
        async with operator_at(here, who) as operator:
            before = operator.cpu_seconds()
            for number in range(jobs):
                await here.client.create(MPIJOBS, mpijob(setting.scenario, NAMESPACE, number))
            step.now_left(f"{MEASURED_SECONDS:.0f} s that are measured")
            await asyncio.sleep(MEASURED_SECONDS)
            spent = operator.cpu_seconds() - before
        requests = await here.requests_of(NAMESPACE)
    return {"CPU a job": 1000 * spent / jobs, "requests a job": sum(requests.values()) / jobs}
