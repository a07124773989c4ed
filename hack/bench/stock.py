"""A cluster full of jobs, or one that fills: how long an operator takes to start, its memory, and how soon it sees to one more job."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.bench_cluster import BenchCluster
from bench.loads import jobs_seen
from bench.objects import children, mpijob
from bench.results import Sample
from bench.samples import percentile, sum_of
from bench.scenarios import Scenario
from bench.session import NAMESPACE, Setting, operator_at
from e2e.waiting import until
from embedded.progress import Step
from mpiop.api import constants as c
from mpiop.clock import format_time
from mpiop.kube.client import Client
from mpiop.kube.objects import key_of
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, Selection

STOCK: Final = "stock"
"""The namespace of the jobs that are there all the time."""
IN_FLIGHT: Final = 32
PODS_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 5.0
_BUSY: Final = "busy"
_READ_OF_ETCD: Final = "apiserver_storage_list_fetched_objects_total"
"""How many objects lists have read of etcd, past the watch cache."""
_SERVER_CPU: Final = "process_cpu_seconds_total"
_SERVER_MEMORY: Final = "process_resident_memory_bytes"
_FOREVER: Final = {"mpiop.test/complete-after": "86400s"}


async def turn(setting: Setting, who: str, step: Step) -> Sample:
    """Measure an operator in a new cluster that is filled first."""
    scenario = setting.scenario
    step.now_left("a cluster")
    async with setting.bench_cluster(has_audit=True) as here:
        await _fill(here, scenario, step)
        step.now_left("the first start")  # which writes what the objects lack
        async with operator_at(here, who):
            pass
        step.now_left("the second start")
        cold, begun = await here.api_server_metrics(), time.monotonic()
        async with operator_at(here, who) as operator:
            start_seconds, memory_mib, started = time.monotonic() - begun, operator.rss_mib(), await here.api_server_metrics()
            used, machine = operator.cpu_seconds(), _ticks()
            seen = await jobs_seen(here, scenario, step, pause_seconds=1 / scenario.jobs_a_second)
            used, machine, peak_mib = operator.cpu_seconds() - used, _ticks() - machine, operator.peak_mib()
            ended = await here.api_server_metrics()
        requests = await here.requests_of(NAMESPACE)
    accepted = [job.accepted - job.submitted for job in seen.jobs.values() if job.accepted is not None]
    made = [max(job.existing.values()) - job.submitted for job in seen.jobs.values()]
    return {
        "start": start_seconds,
        "memory": memory_mib,
        "read of etcd": sum_of(started, _READ_OF_ETCD) - sum_of(cold, _READ_OF_ETCD),
        "half accepted": percentile(accepted, 0.5),
        "accepted": percentile(accepted, 0.99),
        "all made": percentile(made, 0.99),
        "CPU a job": 1000 * used / scenario.jobs,
        "peak": peak_mib,
        "requests a job": sum(requests.values()) / scenario.jobs,
        "server CPU a job": 1000 * (sum_of(ended, _SERVER_CPU) - sum_of(started, _SERVER_CPU)) / scenario.jobs,
        "server memory": sum_of(ended, _SERVER_MEMORY) / 2**20,
        "busy": 100 * machine[_BUSY] / machine.total(),
    }


def _ticks() -> Counter[str]:
    """Return the time of the machine's processors, by whether they were busy (proc_stat(5))."""
    user, nice, system, idle, waiting, *interrupts = map(int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9])
    return Counter({_BUSY: user + nice + system + sum(interrupts), "idle": idle + waiting})


async def _fill(here: BenchCluster, scenario: Scenario, step: Step) -> None:
    """Make the ended jobs, without Pods, and those that run, as an operator has left them."""
    await here.make_namespace(STOCK)
    places = asyncio.Semaphore(IN_FLIGHT)
    left = scenario.ended + scenario.running

    async def one(client: Client, number: int) -> None:
        nonlocal left
        async with places:
            await _make(client, scenario, number, is_ended=number < scenario.ended)
        left -= 1
        if not left % 100:
            step.now_left(f"{left} jobs")

    async with here.client_of(IN_FLIGHT) as client, asyncio.TaskGroup() as group:
        for number in range(left):
            group.create_task(one(client, number))

    async def do_run() -> bool:
        page = await here.client.list_page(Selection(PODS, STOCK), resource_version="0")
        running = [pod.get("status", {}).get("phase") for pod in page["items"]].count("Running")
        step.now_left(f"{2 * scenario.running - running} Pods")
        return running == 2 * scenario.running

    await until("all Pods run", do_run, timeout_seconds=PODS_SECONDS, look_seconds=LOOK_SECONDS)


async def _make(client: Client, scenario: Scenario, number: int, *, is_ended: bool) -> None:
    made: Any = mpijob(scenario, STOCK, number)
    roles = made["spec"]["mpiReplicaSpecs"]
    roles["Worker"]["replicas"] = 1
    roles["Launcher"]["template"]["metadata"] = {"annotations": _FOREVER}
    stored = await client.create(MPIJOBS, made)
    await client.patch(MPIJOBS, key_of(stored), {"status": status_of(is_ended=is_ended)}, subresource="status")
    for child in children(stored):
        body: Any = child.body
        if is_ended and child.resource is PODS:
            continue
        if is_ended and child.resource is JOBS:
            body["spec"]["suspend"] = True  # else its controller would run it
        await client.create(child.resource, body)


def status_of(*, is_ended: bool) -> Mapping[str, Any]:
    """Return the status that an operator gives a job that has ended, or that runs."""
    now = format_time(datetime.now(UTC))
    true = (c.CONDITION_CREATED, c.CONDITION_SUCCEEDED if is_ended else c.CONDITION_RUNNING)
    rows = [
        {"type": type_, "status": "True", "reason": f"MPIJob{type_}", "message": "", "lastTransitionTime": now, "lastUpdateTime": now}
        for type_ in true
    ]
    ended = {"completionTime": now, "replicaStatuses": {"Launcher": {"succeeded": 1}}} if is_ended else {}
    return {"conditions": rows, "startTime": now, **ended}
