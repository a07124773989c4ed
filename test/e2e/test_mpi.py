"""The MPI libraries, really run: π over three workers of two slots, by both users and policies, with and without ranks on the launcher.

And with workers that come later than the launcher, by the seconds in MPIOP_E2E_LATE (20,120). The images wait for nothing and try
nothing again. Jobs run side by side, for most of a job's time is waiting; MPIOP_E2E_RUNS repeats all.
"""

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pytest
import yaml

from demonstration.operator_images import named_image
from e2e.causes import check_shown_soon
from e2e.jobs import (
    EXAMPLES,
    LAUNCHER,
    RUNS,
    condition,
    has_ended,
    is_true,
    launcher_container,
    let_workers_come,
    pi_job,
    restarts,
    until_launcher_has_waited,
    until_true,
    without_workers_yet,
)
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import IMPLEMENTATIONS, SSHD_IMAGES, with_library
from mpiop.kube.resources import EVENTS, MPIJOBS, PODS

AT_ONCE: Final = 8
WORKERS: Final = 3
SLOTS: Final = 2
LATE_SECONDS: Final = tuple(map(int, (os.environ.get("MPIOP_E2E_LATE", "") or "20").split(",")))
END_SECONDS: Final = 240
IMAGES: Final = (*SSHD_IMAGES, "pi-mpich-debian")


@dataclass(frozen=True)
class Combination:
    """One way to run π."""

    library: str
    user: str
    policy: str
    launcher_works: bool
    attempt: int = 1
    workers: int = WORKERS
    late_seconds: int = 0
    """How much later than the launcher the workers come."""

    @property
    def name(self) -> str:
        policy = {"AtStartup": "at", "WaitForWorkersReady": "wait"}[self.policy]
        all_ = "-all" if self.launcher_works else ""
        late = f"-late-{self.late_seconds}" if self.late_seconds else ""
        return f"{self.library}-{self.user}-{policy}{all_}{late}-{self.attempt}"

    @property
    def hosts(self) -> list[str]:
        """Host names that ranks must be seen on."""
        workers = [f"{self.name}-worker-{index}" for index in range(self.workers)]
        return [f"{self.name}-launcher", *workers] if self.launcher_works else workers


COMBINATIONS: Final = [
    Combination(*each)
    for each in itertools.product(
        IMPLEMENTATIONS, ("root", "mpiuser"), ("AtStartup", "WaitForWorkersReady"), (False, True), range(1, RUNS + 1)
    )
] + [
    Combination(library, "mpiuser", "AtStartup", launcher_works=False, attempt=attempt, late_seconds=seconds)
    for library, seconds, attempt in itertools.product(IMPLEMENTATIONS, LATE_SECONDS, range(1, RUNS + 1))
]


@dataclass(frozen=True)
class Outcome:
    """What is left of a run when its job has ended."""

    job: Obj
    launchers: list[Obj]
    log: str
    previous_log: str
    """What the launcher reported before it was started again; "" where it was not."""


def job_of(run: Combination) -> Obj:
    """Return the MPIJob of `run`: the example's for its user, changed in what the combination sets."""
    example = EXAMPLES / "pi" / ("pi-root.yaml" if run.user == "root" else "pi.yaml")
    job: Obj = yaml.safe_load(example.read_text(encoding="utf-8"))
    job["metadata"] = {"name": run.name}
    spec = job["spec"]
    spec |= {
        "slotsPerWorker": SLOTS,
        "launcherCreationPolicy": run.policy,
        "runLauncherAsWorker": run.launcher_works,
    }
    spec["mpiReplicaSpecs"]["Worker"]["replicas"] = run.workers
    launcher_container(job)["args"] = ["-n", str(SLOTS * len(run.hosts)), "/home/mpiuser/pi", "1000000"]
    return with_library(job, run.library, run.library)


def outcome_of(here: Kubectl, job: Obj, late_seconds: int = 0) -> Outcome:
    """Run `job` to its end, its workers so much later than its launcher, and delete it if it ended well, so that others have room."""
    name = job["metadata"]["name"]
    if late_seconds:
        here.apply(without_workers_yet(job))
        until_launcher_has_waited(here, name, late_seconds)
        let_workers_come(here, name)
    else:
        here.apply(job)
    ended = here.until_one(MPIJOBS, name, has_ended, timeout_seconds=END_SECONDS)
    launchers = here.read_all(PODS, f"training.kubeflow.org/job-name={name},training.kubeflow.org/job-role=launcher")
    log = here.run("logs", launchers[0]["metadata"]["name"]) if launchers else ""
    previous_log = "".join(previous_log_of(here, launcher) for launcher in launchers if restarts(launcher))
    if is_true(ended, "Succeeded"):
        here.run("delete", "mpijob", name, "--wait=false")
    return Outcome(ended, launchers, log, previous_log)


def previous_log_of(here: Kubectl, launcher: Obj) -> str:
    """Return what the container of `launcher` reported last before the kubelet started it again."""
    return here.attempt("logs", launcher["metadata"]["name"], "--previous").stdout


@pytest.fixture(scope="module")
def outcomes(images: None, module_namespace: Kubectl, request: pytest.FixtureRequest) -> Iterator[Mapping[Combination, Future[Outcome]]]:
    """The ends of all runs that were asked for, which are under way, AT_ONCE at a time; the other tests of this file run next to them."""
    assert images is None
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    runs = [run for item in items if isinstance(run := item.callspec.params.get("run"), Combination)]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield {run: pool.submit(outcome_of, module_namespace, job_of(run), run.late_seconds) for run in runs}
    finally:
        pool.shutdown(cancel_futures=True)


def ranks_by_host(log: str, words: str = "runs on") -> Counter[str]:
    """Return how many ranks reported that they ran on each host."""
    return Counter(re.findall(rf"^rank \d+ of \d+ {words} (\S+)$", log, re.MULTILINE))


@pytest.mark.parametrize("library", [library for library, implementation in IMPLEMENTATIONS.items() if implementation != "OpenMPI"])
@pytest.mark.usefixtures("outcomes")
def test_daemons_need_no_name_of_their_launcher(library: str, namespace: Kubectl) -> None:
    """Hydra's would look it up: the name of a launcher that never becomes Ready is never published."""
    run = Combination(library, "mpiuser", "AtStartup", launcher_works=False)
    job = job_of(run)
    launcher_container(job)["readinessProbe"] = {"exec": {"command": ["/bin/false"]}}
    outcome = outcome_of(namespace, job)
    assert ranks_by_host(outcome.log) == dict.fromkeys(run.hosts, SLOTS), outcome.log
    assert [restarts(pod) for pod in outcome.launchers] == [0], outcome.previous_log


RADIX: Final = {
    "openmpi": "OMPI_MCA_routed_radix",
    "openmpi5": "PRTE_MCA_rml_base_radix",
    "intel": "I_MPI_HYDRA_BRANCH_COUNT",
}
"""What reports how many others each daemon starts, so that the last workers are reached from others and not from the launcher."""


@pytest.mark.parametrize(("user", "radix", "workers"), [("root", 1, 3), ("mpiuser", 1, 3), ("mpiuser", 2, 8)])
@pytest.mark.parametrize("library", RADIX)
@pytest.mark.usefixtures("outcomes")
def test_workers_start_each_other_in_a_tree(library: str, user: str, radix: int, workers: int, namespace: Kubectl) -> None:
    # Each with a name of its own: a name server may still know the workers of an earlier job of that name (docs/limits.md).
    run = Combination(library, user, "AtStartup", launcher_works=False, attempt=radix, workers=workers)
    check_tree(run, radix, namespace)


def check_tree(run: Combination, radix: int, here: Kubectl, timeout_seconds: int = END_SECONDS) -> None:
    """Run π on workers that start each other, `radix` each, and see that they did, at the first attempt."""
    job = job_of(run)
    job["spec"]["runPolicy"]["cleanPodPolicy"] = "None"
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}  # 64 of them find room on two cores
    launcher_container(job)["env"] = [{"name": RADIX[run.library], "value": str(radix)}]
    here.apply(job)
    ended = here.until_one(MPIJOBS, run.name, has_ended, timeout_seconds=timeout_seconds)
    [launcher] = here.read_all(PODS, LAUNCHER)
    log = here.run("logs", launcher["metadata"]["name"])
    assert is_true(ended, "Succeeded"), log
    assert ranks_by_host(log) == dict.fromkeys(run.hosts, SLOTS)
    assert restarts(launcher) == 0, launcher["status"]["containerStatuses"]
    clients = {host: clients_of(here, host) for host in run.hosts}
    addresses = {here.read(PODS, host)["status"]["podIP"] for host in run.hosts}
    assert any(seen & addresses for seen in clients.values()), clients


def clients_of(here: Kubectl, worker: str) -> set[str]:
    """Return the addresses from which somebody has come in by ssh."""
    return set(re.findall(r"Accepted publickey for \S+ from (\S+) port", here.run("logs", worker)))


def small_job(name: str) -> Obj:
    """Return the example's job with one rank, which any host has room for."""
    job = pi_job(name)
    launcher_container(job)["args"] = ["-n", "1", "/home/mpiuser/pi", "1000000"]
    return job


def warnings(here: Kubectl) -> list[str]:
    """Return the reasons of the Warning events of MPIJobs, but for the lack of room, for there are neighbours."""
    reported = [event for event in here.read_all(EVENTS) if event["involvedObject"]["kind"] == "MPIJob" and event["type"] == "Warning"]
    return [event["reason"] for event in reported if event["reason"] != "Unschedulable"]


def test_a_success_without_the_workers_does_not_pass_silently(namespace: Kubectl) -> None:
    job = small_job("alone")
    job["spec"]["mpiImplementation"] = "MPICH"  # whose variables the image's Open MPI does not read
    namespace.apply(job)
    ended = until_true(namespace, "alone", "WorkersUnused")
    assert condition(ended, "WorkersUnused")["reason"] == "NoWorkerReached"
    assert ended["status"]["conditions"][-1]["type"] == "Succeeded"
    [launcher] = namespace.read_all(PODS, LAUNCHER)
    assert "runs on alone-launcher" in namespace.run("logs", launcher["metadata"]["name"])
    namespace.until(EVENTS, lambda _: warnings(namespace) == ["NoWorkerReached"])


def test_a_success_with_the_workers_is_none_of_its_business(namespace: Kubectl) -> None:
    namespace.apply(small_job("together"))
    until_true(namespace, "together", "Succeeded")
    [launcher] = namespace.read_all(PODS, LAUNCHER)
    [container] = launcher["status"]["containerStatuses"]
    assert container["state"]["terminated"]["message"] == "mpirun calls ssh\n"
    assert not condition(namespace.read(MPIJOBS, "together"), "WorkersUnused")
    assert warnings(namespace) == []


def without_sshd(worker: Obj) -> None:
    """Give the workers an image that has no sshd."""
    worker |= {"image": named_image()}


def with_broken_sshd(worker: Obj) -> None:
    """Give the workers an sshd that ends at once."""
    worker["args"] = [*worker["args"], "-p", "no-port"]


@pytest.mark.parametrize("spoil", [without_sshd, with_broken_sshd])
def test_workers_without_a_server_say_so(spoil: Callable[[Obj], None], namespace: Kubectl) -> None:
    job = small_job("deaf")
    spoil(job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0])
    namespace.apply(job)
    stalled = namespace.until_one(
        MPIJOBS, "deaf", lambda found: is_true(found, "Stalled") and condition(found, "Stalled")["reason"] == "NoSshd"
    )
    assert "pod deaf-worker-" in condition(stalled, "Stalled")["message"]
    namespace.until(EVENTS, lambda _: warnings(namespace) == ["NoSshd"])
    check_shown_soon("deaf", "NoSshd", namespace)


@pytest.mark.parametrize("run", COMBINATIONS, ids=lambda run: run.name)
def test_every_worker_has_its_ranks_at_the_first_try(run: Combination, outcomes: Mapping[Combination, Future[Outcome]]) -> None:
    outcome = outcomes[run].result()
    assert is_true(outcome.job, "Succeeded"), f"{condition(outcome.job, 'Failed')}\n{outcome.log}"
    assert ranks_by_host(outcome.log) == dict.fromkeys(run.hosts, SLOTS), outcome.log
    assert "pi is approximately 3.14159" in outcome.log
    [launcher] = outcome.launchers
    assert restarts(launcher) == 0, outcome.previous_log
    assert outcome.job["status"]["replicaStatuses"]["Launcher"].get("failed", 0) == 0
