"""Steps of an allocation on a real kubelet: how much longer they take than the same `mpirun` typed in the launcher."""

import asyncio
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from bench.bench_cluster import BenchCluster
from bench.operator_process import ours
from bench.real_jobs import real_cluster
from bench.results import OURS, Sample
from bench.session import NAMESPACE, Setting, Turn, leading
from demonstration.cluster import ROOT, environment_of
from e2e.libraries import IMPLEMENTATIONS, LIBRARIES, PLAIN_IMAGES, plain_image
from embedded.progress import Step
from mpiop.client.allocation import wait_until_running
from mpiop.client.allocations import Allocation
from mpiop.client.mpi import MPI

RANKS: Final = 8
HOSTS: Final = 2
REPEATS: Final = 3
"""A round counts with the median of so many repetitions."""
_LARGE_BYTES: Final = 2**20
_PYTHON: Final = "python"
_SSHD_IMAGE: Final = "mpiop.invalid/mpi-pi:openmpi"
"""For `run`: with injected ssh, its Pods would request more processors than the allocations leave."""
_IN_NAMESPACE: Final = f"--namespace={NAMESPACE}"
_IMPORT: Final = f"mpirun -n {RANKS} python3 -c 'from mpi4py import MPI'"


@dataclass(frozen=True, slots=True)
class Place:
    """Where steps are measured.

    Attributes:
        mpi: The Python client.
        environment: Of `kubectl` and `kubectl-mpi`.
        folder: Is uploaded.
    """

    mpi: MPI
    environment: Mapping[str, str] = field(repr=False)
    folder: Path

    def tool(self, *words: str) -> None:
        """Run a verb of `kubectl mpi`."""
        self._run("kubectl-mpi", *words)

    def step(self, name: str, *options: str) -> None:
        """Run a step on all ranks of an allocation."""
        self.tool("step", name, _IN_NAMESPACE, *options, "--", "hostname")

    def bare(self, name: str, command: str) -> float:
        """Return how many seconds a command takes that is typed in the launcher, without the time of `kubectl exec`."""
        script = f"a=$(date +%s%N); {command} >/dev/null </dev/null; echo $(($(date +%s%N) - a))"
        job = f"job/{name}-launcher"
        return int(self._run("kubectl", "exec", _IN_NAMESPACE, job, "--container=launcher", "--", "sh", "-c", script)) / 1e9

    def change(self) -> None:
        """Change the large file of the folder."""
        (self.folder / "large").write_bytes(os.urandom(_LARGE_BYTES))

    def _run(self, *command: str) -> str:
        return subprocess.run(
            command, env=dict(self.environment), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True
        ).stdout


@contextlib.asynccontextmanager
async def turns(setting: Setting) -> AsyncIterator[Mapping[str, Turn]]:
    """Bring up a cluster with a real node and an allocation of each library for all rounds, and yield the turns of mpiop."""
    async with real_cluster(setting, *PLAIN_IMAGES, "pi", "mpi4py") as here, leading(here, ours()) as operator, operator.alive():
        with tempfile.TemporaryDirectory() as folder:
            place = _place(here, Path(folder))
            allocations = {library: await asyncio.to_thread(_allocate, place.mpi, library) for library in (*LIBRARIES, _PYTHON)}
            yield {OURS: partial(_turn, place, allocations)}


def _place(here: BenchCluster, folder: Path) -> Place:
    environment = environment_of(here.cluster)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed `kubectl mpi` is compiled
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    environment["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    os.environ["PATH"] = environment["PATH"]  # where the Python client finds kubectl
    uploaded = folder / "uploaded"
    uploaded.mkdir()
    return Place(MPI(namespace=NAMESPACE, kubeconfig=environment["KUBECONFIG"]), environment, uploaded)


def _allocate(mpi: MPI, library: str) -> Allocation:
    """Make an allocation and run a first step, which is not measured."""
    is_python = library == _PYTHON
    image = "mpiop.invalid/mpi4py:openmpi" if is_python else plain_image(library)
    implementation = "openmpi" if is_python else IMPLEMENTATIONS[library].lower()
    job = mpi.allocate(name=library, image=image, mpi=implementation, ssh="injected", ranks=RANKS, slots=RANKS // HOSTS)
    wait_until_running(job)
    allocation = Allocation(job, mpi.kubectl_options)
    if is_python:
        allocation.run(_pid)
    return allocation


def _pid() -> int:
    """Travels by value, as the functions of scripts and notebooks do."""
    return os.getpid()


async def _turn(place: Place, allocations: Mapping[str, Allocation], step: Step) -> Sample:
    """Measure a step and its bare `mpirun` in turns, with each library, and then functions and uploads."""
    found = dict[str, float]()
    for library in LIBRARIES:
        step.now_left(library)
        bare = partial(place.bare, library, f"mpirun -n {RANKS} hostname")
        found |= await asyncio.to_thread(_compared, library, _timed(partial(place.step, library)), bare)
    step.now_left("functions, uploads and jobs")
    function = _timed(partial(allocations[_PYTHON].run, _pid))
    found |= await asyncio.to_thread(_compared, "function", function, partial(place.bare, _PYTHON, _IMPORT))
    upload = _timed(partial(place.step, LIBRARIES[0], "--upload", str(place.folder)), place.change)
    found |= await asyncio.to_thread(_compared, "upload", upload, _timed(partial(place.step, LIBRARIES[0])))
    sizes = ("-n", str(RANKS), "--slots", str(RANKS // HOSTS))
    words = ("run", _IN_NAMESPACE, *sizes, "--image", _SSHD_IMAGE, "--ssh", "image", "--rm")
    found["run"] = await asyncio.to_thread(_timed(partial(place.tool, *words, "--", "hostname")))
    return found


def _compared(name: str, measured: Callable[[], float], base: Callable[[], float]) -> Sample:
    """Return the medians of both, and of what the first one takes longer."""
    pairs = [(measured(), base()) for _ in range(REPEATS)]
    firsts, bases = ([pair[index] for pair in pairs] for index in range(2))
    return {
        name: statistics.median(firsts),
        f"{name} bare": statistics.median(bases),
        f"{name} added": statistics.median(first - other for first, other in pairs),
    }


def _timed(work: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> Callable[[], float]:
    def run() -> float:
        prepare()
        begun = time.monotonic()
        work()
        return time.monotonic() - begun

    return run
