"""What fills a node: a hundred jobs, of which forty are broken, and one job of 64 workers.

Each of the forty shows its cause, and the sixty others take as long as without them. The 64 workers start each other in a tree.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.broken import BROKEN, Broken, broken_job, no_sandbox_class, one_worker
from e2e.clusters import ROOT
from e2e.conftest import new_namespace
from e2e.jobs import held, is_true, state
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import SSHD_IMAGES
from e2e.operator_pods import Operator
from e2e.test_mpi import Combination, check_tree
from mpiop.kube.resources import MPIJOBS

IMAGES = SSHD_IMAGES
GOOD = 60
MEASURED = ROOT / "build" / "e2e" / "crowd.txt"
DONE_SECONDS = 900


def good_jobs() -> list[Obj]:
    return [one_worker(f"good-{number}") for number in range(GOOD)]


def broken_jobs() -> list[tuple[Broken, Obj]]:
    jobs = [(broken, broken_job(broken)) for broken in BROKEN for _ in range(2)][:40]
    for number, (broken, job) in enumerate(jobs):
        job["metadata"]["name"] = f"{broken.id}-{number}"
    return jobs


@contextmanager
def crowd(cluster: Kubectl, name: str, session: pytest.Session) -> Iterator[Kubectl]:
    with new_namespace(cluster, name, session) as here:
        yield here
        here.run("delete", "mpijobs", "--all", "--wait=false")


def until_good_ones_are_done(here: Kubectl) -> float:
    """Return the seconds until the last good job has succeeded."""
    begun = time.monotonic()
    here.until(
        MPIJOBS,
        lambda jobs: sum(is_true(job, "Succeeded") for job in jobs) == GOOD,
        timeout_seconds=DONE_SECONDS,
    )
    return time.monotonic() - begun


def test_forty_broken_jobs_disturb_sixty_good_ones_in_nothing(cluster: Kubectl, operator: Operator, request: pytest.FixtureRequest) -> None:
    assert operator.pods()
    with crowd(cluster, "sixty", request.session) as here:
        here.apply(*good_jobs())
        alone = until_good_ones_are_done(here)
    with crowd(cluster, "well", request.session) as here:
        here.apply(*(held(one_worker(f"held-{number}")) for number in range(40)))
        here.until(MPIJOBS, lambda jobs: all(is_true(job, "Running") for job in jobs), timeout_seconds=DONE_SECONDS)
        here.apply(*good_jobs())
        beside_held = until_good_ones_are_done(here)
    broken = broken_jobs()
    with no_sandbox_class(cluster), crowd(cluster, "hundred", request.session) as here:
        here.apply(*(job for _, job in broken))
        expected = {job["metadata"]["name"]: cause.reason for cause, job in broken}

        def are_reported(jobs: list[Obj]) -> bool:
            return expected.items() <= {job["metadata"]["name"]: state(job) for job in jobs}.items()

        here.until(MPIJOBS, are_reported, timeout_seconds=DONE_SECONDS)
        here.apply(*good_jobs())
        beside = until_good_ones_are_done(here)
    MEASURED.parent.mkdir(parents=True, exist_ok=True)
    MEASURED.write_text(
        f"{GOOD} jobs alone: {alone:.1f} s; beside 40 that run: {beside_held:.1f} s; beside 40 broken ones: {beside:.1f} s\n",
        encoding="utf-8",
    )


@pytest.mark.parametrize("library", ["openmpi", "openmpi5"])
@pytest.mark.usefixtures("images")
def test_64_workers_start_each_other_in_a_tree(library: str, namespace: Kubectl) -> None:
    run = Combination(library, "mpiuser", "AtStartup", launcher_works=False, workers=64)
    check_tree(run, 4, namespace, DONE_SECONDS)
