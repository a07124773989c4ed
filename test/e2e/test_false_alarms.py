"""Jobs that end well raise no alarm: plain runs, launchers that repeat `mpirun`, and launchers that adapt to fewer workers.

MPIOP_E2E_RUNS repeats all of them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import pytest

from e2e.alarms import alarms_until_the_end
from e2e.jobs import RUNS, launcher_container, launcher_pod
from e2e.kubectl import Kubectl
from e2e.libraries import LIBRARIES, PLAIN_IMAGES, plain_job
from e2e.test_mpi import END_SECONDS
from mpiop.api.constants import LABEL_JOB_NAME
from mpiop.kube.resources import PODS

IMAGES: Final = PLAIN_IMAGES
WORKERS: Final = 3
AT_ONCE: Final = 3
"""The init container with mpiop-agent asks for 100m in each Pod."""
LOOP: Final = f'n=0; until n=$((n + 1)); mpirun -n {WORKERS} sh -c "sleep 1; exit $((n < 3))"; do :; done'
"""The third `mpirun` succeeds. Ranks of milliseconds would hang with Open MPI 5 now and then (docs/troubleshooting.md)."""
ELASTIC: Final = f"""
hosts={WORKERS} seconds=600
until mpirun -n "$hosts" sh -c "echo computes; sleep $seconds"; do
    hosts=$(/etc/mpi/discover_hosts.sh | wc -l) seconds=1
done
"""
"""As Elastic Horovod does it: it starts with the workers that are there, and again with those that are left.

The kubelet brings the new hostfile later than the new discover_hosts.sh, or earlier: then some `mpirun` puts three ranks on two hosts.
"""


def scale_down(here: Kubectl, name: str) -> None:
    """Remove a worker of the job when all of its ranks run."""
    with here.following(launcher_pod(here, name, timeout_seconds=END_SECONDS), timeout_seconds=END_SECONDS) as lines:
        assert sum(1 for _ in itertools.islice((line for line in lines if "computes" in line), WORKERS)) == WORKERS
    here.run("scale", f"mpijob/{name}", f"--replicas={WORKERS - 1}")


KINDS: Final[Mapping[str, tuple[str, Callable[[Kubectl, str], object]]]] = {
    "plain": ("", lambda _here, _name: None),
    "loop": (LOOP, lambda _here, _name: None),
    "elastic": (ELASTIC, scale_down),
}
"""The script of the launcher, and what happens to the job meanwhile."""


def alarms_of(here: Kubectl, kind: str, library: str, name: str) -> list[str]:
    """Run a job to its end, and return the alarms about it."""
    job = plain_job(library, name, workers=WORKERS)
    for role in job["spec"]["mpiReplicaSpecs"].values():  # to wait for room would be an alarm
        role["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    script, disturb = KINDS[kind]
    if script:
        launcher_container(job).update(command=["/bin/sh", "-c", script], args=[])
    here.apply(job)
    with ThreadPoolExecutor(1) as pool:
        alarms = pool.submit(alarms_until_the_end, here, name, timeout_seconds=END_SECONDS)
        disturb(here, name)
        found = alarms.result()
    here.run("delete", "mpijob", name, "--wait=false")
    here.until(PODS, lambda pods: not pods, labels=f"{LABEL_JOB_NAME}={name}", timeout_seconds=END_SECONDS)  # the next job needs their room
    return found


@pytest.fixture(scope="module")
def outcomes(images: None, module_namespace: Kubectl) -> Iterator[Mapping[str, Future[list[str]]]]:
    """What was reported about each job, by its name; the jobs are under way, AT_ONCE at a time."""
    assert images is None
    pool = ThreadPoolExecutor(AT_ONCE)
    runs = [(kind, library, f"{kind}-{library}-{run}") for run, kind, library in itertools.product(range(1, RUNS + 1), KINDS, LIBRARIES)]
    try:
        yield {name: pool.submit(alarms_of, module_namespace, kind, library, name) for kind, library, name in runs}
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("run", range(1, RUNS + 1))
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_ends_well_raises_no_alarm(kind: str, library: str, run: int, outcomes: Mapping[str, Future[list[str]]]) -> None:
    assert outcomes[f"{kind}-{library}-{run}"].result() == []
