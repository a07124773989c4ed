"""Gang scheduling: with Kubernetes' own scheduler a gang that does not fit holds no Pod, and starts when there is room.

Other schedulers have clusters of their own: test_volcano.py, test_coscheduling.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.clusters import ROOT, operator_cluster
from e2e.gangs import (
    CLUSTER,
    GATES,
    NATIVE,
    NATIVE_KINDS,
    GangCluster,
    bound,
    check_pi,
    patient,
    run_second_after_first,
    seated,
    seated_namespace,
    until_bound,
    until_refused,
)
from e2e.jobs import edit, held, launcher_pod, let_run, pi_job, until_true, until_waiting
from e2e.kubectl import DEPLOYMENTS, Kubectl
from e2e.shell import open_shell
from mpiop.kube.resources import NATIVE_POD_GROUPS_1_36, PODS


@pytest.fixture(scope="module")
def gang_cluster(request: pytest.FixtureRequest) -> Iterator[GangCluster]:
    """A cluster of its own: Kubernetes' gangs are behind feature gates."""
    with operator_cluster(CLUSTER, request, *GATES) as cluster:
        yield GangCluster(cluster)


@pytest.fixture
def here(gang_cluster: GangCluster, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own; its Pods have gone when the next test begins, for they take seats."""
    with seated_namespace(gang_cluster, request) as kubectl:
        yield kubectl


def min_count(here: Kubectl) -> int:
    """Return how many Pods the job's gang waits for."""
    count: int = here.read(NATIVE_POD_GROUPS_1_36, "pi")["spec"]["schedulingPolicy"]["gang"]["minCount"]
    return count


def test_without_gangs_a_job_that_does_not_fit_holds_what_it_got(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.use("")
    gang_cluster.make_room(2)
    here.apply(seated(pi_job("pi", workers=2)))
    until_bound(here, "pi", 2)
    assert len(until_refused(here, "pi", 3)) == 3


def test_the_guide_switches_it_on(gang_cluster: GangCluster, tmp_path: Path) -> None:
    """A rollout ends when the new replicas are ready, and without the API of gangs they are not."""
    gang_cluster.use("")
    gang_cluster.scheduler = None  # what the guide does, `use` does not see
    open_shell(gang_cluster.operator, ROOT, tmp_path / "kubeconfig").follow("docs/gang-scheduling.md", "Switch it on")
    [container] = gang_cluster.operator.read(DEPLOYMENTS, "mpi-operator")["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == f"--gang-scheduling={NATIVE}"


def test_a_gang_that_does_not_fit_holds_no_pod_and_computes_when_there_is_room(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.use(NATIVE)
    gang_cluster.make_room(2)
    here.apply(seated(pi_job("pi", workers=2)))
    assert bound(until_refused(here, "pi", 3)) == []
    assert until_waiting(here, "pi")["reason"] == "Unschedulable"
    assert min_count(here) == 3
    assert bound(here.read_all(PODS)) == []
    gang_cluster.make_room(3)
    until_true(here, "pi", "Succeeded")
    check_pi(here, "pi")
    for kind in NATIVE_KINDS:
        here.until_gone(kind, "pi")  # by cleanPodPolicy


def test_of_two_gangs_the_second_starts_when_the_first_has_ended(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.use(NATIVE)
    run_second_after_first(gang_cluster, here)


def test_waiting_for_the_workers_does_not_wait_for_ever(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.use(NATIVE)
    gang_cluster.make_room(1)
    here.apply(patient(seated(pi_job("pi", workers=2))))
    assert bound(until_refused(here, "pi", 2)) == []
    assert min_count(here) == 2
    gang_cluster.make_room(3)
    until_true(here, "pi", "Succeeded")


def test_a_suspended_gang_gives_its_seats_back_and_is_a_new_one_afterwards(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.use(NATIVE)
    gang_cluster.make_room(3)
    here.apply(held(seated(pi_job("pi", workers=2))))
    launcher_pod(here)
    before = {here.read(kind, "pi")["metadata"]["uid"] for kind in NATIVE_KINDS}
    edit(here, runPolicy={"suspend": True})
    here.until(PODS, lambda pods: not pods)
    for kind in NATIVE_KINDS:
        here.until_gone(kind, "pi")
    edit(here, runPolicy={"suspend": False, "schedulingPolicy": {"minAvailable": 2}})
    let_run(here, launcher_pod(here))
    assert before.isdisjoint({here.read(kind, "pi")["metadata"]["uid"] for kind in NATIVE_KINDS})
    assert min_count(here) == 2, "a changed policy takes effect with the start"
    until_true(here, "pi", "Succeeded")


def test_resumed_at_once_a_job_waits_until_its_old_gang_has_gone(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.use(NATIVE)
    gang_cluster.make_room(3)
    here.apply(held(seated(pi_job("pi", workers=2))))
    launcher = launcher_pod(here)
    edit(here, runPolicy={"suspend": True})
    until_true(here, "pi", "Suspended")
    edit(here, runPolicy={"suspend": False})
    here.until(PODS, lambda pods: launcher not in [pod["metadata"]["name"] for pod in pods])
    let_run(here, launcher_pod(here))
    until_true(here, "pi", "Succeeded")
