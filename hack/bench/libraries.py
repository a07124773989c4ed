"""One job at a time on a real kubelet with each MPI library: how long it takes with an sshd of its image, and with mpiop-agent."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Final

from bench.bench_cluster import BenchCluster
from bench.operator_process import ours
from bench.real_jobs import Watched, real_cluster, run
from bench.results import OURS, Sample
from bench.session import Setting, Turn, leading
from e2e.kubectl import Obj
from e2e.libraries import LIBRARIES, PLAIN_IMAGES, SSHD_IMAGES, plain_job, sshd_job
from embedded.progress import Step

WAYS: Final[Mapping[str, tuple[str, Callable[..., Obj]]]] = {
    "sshd": ("Copy", sshd_job),
    "copied": ("Copy", plain_job),
    "mounted": ("Mount", plain_job),
}
"""Value of `--agent-delivery` and the job, by what the figures are called: an sshd of the image, or how mpiop-agent comes into the Pod."""


@contextlib.asynccontextmanager
async def turns(setting: Setting) -> AsyncIterator[Mapping[str, Turn]]:
    """Bring up a cluster with a real node for all rounds, and yield the turns of mpiop."""
    async with real_cluster(setting, *SSHD_IMAGES, *PLAIN_IMAGES) as here:
        yield {OURS: partial(_turn, here, setting.scenario.workers, itertools.count())}


async def _turn(here: BenchCluster, workers: int, numbers: Iterator[int], step: Step) -> Sample:
    """Run a job of each library in each way, the ways in changing order."""
    number = next(numbers)
    found = dict[str, float]()
    for way in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
        delivery, job_of = WAYS[way]
        watched = Watched(here)
        async with leading(here, ours(flags=[f"--agent-delivery={delivery}"])) as operator, operator.alive(), watched.watching():
            for library in LIBRARIES:
                step.now_left(f"{library} {way}")
                found[f"{library} {way}"] = (await run(watched, job_of(library, f"pi-{number}", workers=workers)))["Succeeded"]
    return {**found, **{way: sum(found[f"{library} {way}"] for library in LIBRARIES) for way in WAYS}}
