"""`top`: what each worker uses, and which lag behind."""

import statistics
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import click

from mpiop.client.errors import ClientError, NotFoundError
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import print_table
from mpiop.kubectl.session import Session, cluster_options

_UNITS: Final[Mapping[str, Fraction]] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}
_STRAGGLER: Final = 0.5
"""A worker that uses less than this part of the median computes less than its neighbours: it waits, or its node is slow."""


@click.command("top")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@cluster_options()
def top_verb(session: Session, name: str) -> None:
    """Show processor and memory that the Pods of a job use; stragglers are marked."""
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
    workers = [cpu for pod, (cpu, _) in used.items() if "-worker-" in pod]
    usual = statistics.median(workers) if workers else Fraction(0)
    rows = [
        [pod, f"{float(cpu):.2f}", f"{int(memory / 2**20)}Mi", "lags behind" if _lags(pod, cpu, usual) else ""]
        for pod, (cpu, memory) in sorted(used.items(), key=lambda row: (len(row[0]), row[0]))
    ]
    print_table(("POD", "CPU", "MEMORY", ""), rows)


def _lags(pod: str, cpu: Fraction, usual: Fraction) -> bool:
    return "-worker-" in pod and cpu < Fraction(_STRAGGLER) * usual


def _usage(item: Any) -> tuple[Fraction, Fraction]:
    usages = [container["usage"] for container in item["containers"]]
    return sum((amount(usage["cpu"]) for usage in usages), Fraction(0)), sum((amount(usage["memory"]) for usage in usages), Fraction(0))


def amount(quantity: str) -> Fraction:
    """Return a quantity of Kubernetes as a number."""
    digits = quantity.rstrip("numkKMGTi")
    return Fraction(digits) * _UNITS[quantity[len(digits) :]]
