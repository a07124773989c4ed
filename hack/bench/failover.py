"""A planned failover: from the SIGTERM to the leader of two replicas to the first write of the other."""

import asyncio
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from bench import reference
from bench.bench_cluster import LEASE, BenchCluster
from bench.objects import job_name, mpijob
from bench.observer import Observer
from bench.operator_process import OperatorProcess, Program
from bench.results import REFERENCE, Sample
from bench.session import NAMESPACE, Setting, leading, program_of, standing_by
from bench.watching import News, watching
from demonstration.cluster import ROOT
from embedded.progress import Step
from mpiop.kube.objects import Object
from mpiop.kube.resources import LEASES, MPIJOBS
from mpiop.leaderelection.record import holder_of

PATIENCE_SECONDS: Final = 60.0


async def turn(setting: Setting, who: str, step: Step) -> Sample:
    """Measure two replicas of an operator in a new cluster."""
    step.now_left("a cluster")
    async with setting.bench_cluster() as here:
        await here.make_namespace(NAMESPACE)
        if who == REFERENCE:
            await reference.give_rights(here)
        program = await program_of(who)
        try:
            async with leading(here, program) as leader, standing_by(here, _inside(here, program)) as standby:
                step.now_left("a write of the next leader")
                async with standby.alive(), asyncio.timeout(PATIENCE_SECONDS):
                    return {"failover": await _hand_over(here, setting, leader)}
        except TimeoutError as error:
            raise RuntimeError(f"{who}: no write of the next leader within {PATIENCE_SECONDS:.0f} s") from error


def _inside(here: BenchCluster, program: Program) -> Program:
    """Return a program that runs in the network of the cluster: the reference's port of health is always the same."""
    # The reference prefers KUBECONFIG to its flag.
    prefix = (str(ROOT / "hack/cluster"), "exec", "--network-only", "--name", here.cluster, "--", "env", "--unset=KUBECONFIG")
    host = urlsplit(here.access.server).hostname or ""
    return replace(program, command=(*prefix, *program.command), ready_url=program.ready_url.replace("127.0.0.1", host))


async def _hand_over(here: BenchCluster, setting: Setting, leader: OperatorProcess) -> float:
    """Ask `leader` to stop, and return the seconds until another has written: the first condition of a job that comes when it leads."""
    changes, holders, observer = News(), list[str](), Observer(here.client, NAMESPACE)

    def see(_type: str, lease: Object) -> None:
        if lease["metadata"].get("name") == LEASE.name and holder_of(lease):
            holders.append(holder_of(lease))

    async with watching(here.client, LEASE.namespace, {LEASES: see}, changes), observer.watching():
        await changes.until(lambda: bool(holders))
        first = holders[-1]
        leader.tell_to_stop()
        begun = asyncio.get_running_loop().time()
        await changes.until(lambda: holders[-1] != first)
        observer.submit(job_name(0))
        await here.client.create(MPIJOBS, mpijob(setting.scenario, NAMESPACE, 0))
        await observer.until(lambda: observer.count("accepted") == 1)
        return asyncio.get_running_loop().time() - begun
