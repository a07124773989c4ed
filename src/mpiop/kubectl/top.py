"""`top`: shows the CPU and memory that each Pod of a job uses, and marks stragglers."""

import statistics
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, Final

import click

from mpiop.client.errors import ClientError, NotFoundError
from mpiop.client.progress import is_worker, pod_order
from mpiop.kube.quantity import value_of
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import print_table
from mpiop.kubectl.session import Session, cluster_options

_STRAGGLER: Final = 0.5
"""A worker that uses less than this part of the median computes less than its neighbours: it waits, or its node is slow."""


@click.command("top")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@cluster_options()
def top_verb(session: Session, name: str) -> None:
    """Show the CPU and memory that the Pods of a job use, and mark stragglers."""
    api = session.api()
    job = session.mpi().get(name)
    try:
        answer = api.get(f"/apis/metrics.k8s.io/v1beta1/namespaces/{job.namespace}/pods")
    except NotFoundError as error:
        raise ClientError("the cluster has no metrics: install metrics-server") from error
    pods = {pod["metadata"]["name"]: pod for pod in job.pods()}
    used = {item["metadata"]["name"]: _usage(item) for item in answer["items"] if item["metadata"]["name"] in pods}
    if not used:
        raise ClientError(f"there are no measurements of job {name} yet: they come about every 15 s while it runs")
    lagging = stragglers({pod: usage["cpu"] for pod, usage in used.items() if is_worker(pods[pod])})
    others = sorted({resource for usage in used.values() for resource in usage} - {"cpu", "memory"})
    rows = [
        [
            pod,
            f"{float(usage['cpu']):.2f}",
            f"{int(usage['memory'] / 2**20)}Mi",
            *(f"{float(usage.get(other, 0)):g}" for other in others),
            "lags behind" if pod in lagging else "",
        ]
        for pod, usage in sorted(used.items(), key=lambda row: pod_order(pods[row[0]]))
    ]
    print_table(("POD", "CPU", "MEMORY", *map(str.upper, others), ""), rows)


def stragglers(cpu: Mapping[str, Fraction]) -> Collection[str]:
    """Return the workers that use much less processor than is usual among `cpu`, by worker."""
    usual = statistics.median(cpu.values()) if cpu else Fraction(0)
    return {worker for worker, used in cpu.items() if used < Fraction(_STRAGGLER) * usual}


def _usage(item: Any) -> Mapping[str, Fraction]:
    """Return what the containers of a Pod use together, by resource; some metrics servers know more than cpu and memory."""
    total: dict[str, Fraction] = {"cpu": Fraction(0), "memory": Fraction(0)}
    for container in item["containers"]:
        for resource, quantity in container["usage"].items():
            total[resource] = total.get(resource, Fraction(0)) + value_of(quantity)
    return total
