"""Resident memory of an operator that has no job: alone in a cluster, and next to Pods of others."""

from bench.loads import make_foreign_pods
from bench.results import Sample
from bench.session import Setting, operator_at
from embedded.progress import Step


async def turn(setting: Setting, who: str, step: Step) -> Sample:
    """Measure an operator in a new cluster."""
    step.now_left("a cluster")
    async with setting.bench_cluster() as here, operator_at(here, who) as operator:
        idle_mib = operator.rss_mib()
        step.now_left(f"{setting.scenario.foreign_pods} Pods of others")
        await make_foreign_pods(here, setting.scenario)
        await operator.until_quiet()
        return {"idle": idle_mib, "beside": operator.rss_mib()}
