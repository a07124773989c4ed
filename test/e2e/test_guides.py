"""The guides for users of jobs, jobs.md and fault-tolerance.md: their commands, their manifests, and the losses they speak of.

What is lost is lost before the first test, so that the pauses before the next tries are over when they are looked at.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e.clusters import ROOT
from e2e.jobs import LAUNCHER, WORKER, held, let_run, phase, pi_job, running_launcher, until_true, with_script
from e2e.kubectl import Kubectl, Obj
from e2e.shell import Shell, open_shell
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS

FAULTS_GUIDE = "docs/fault-tolerance.md"
# The first attempt puts up a mark on a worker that stays, and its ranks do not end.
TWO_TRIES = (
    '/etc/mpi-hosts/ssh steadfast-worker-0.steadfast mkdir first-try || exec "$@"; exec mpirun -n 2 sh -c "touch /tmp/rank; exec sleep 600"'
)


@dataclass(frozen=True)
class ThreeJobs:
    """A namespace with three jobs under way: `pi` is healthy, `steadfast` has lost a worker, `struck` its launcher's Pod.

    Attributes:
        lost: UIDs of the Pods that were deleted.
    """

    here: Kubectl
    shell: Shell
    lost: frozenset[str]


@pytest.fixture(scope="module")
def three_jobs(module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> ThreeJobs:
    """Start the jobs, and delete a Pod of two of them while they compute."""
    here = module_namespace
    steadfast, _resilient = manifests(FAULTS_GUIDE)
    here.apply(with_script(steadfast, TWO_TRIES), held(with_script(pi_job("struck", workers=1), "exit 0")), held(pi_job("pi", workers=2)))
    until_true(here, "struck", "Running")
    launcher = running_launcher(here, "struck")
    until_true(here, "steadfast", "Running")
    has_rank = "until [ -e /tmp/rank ]; do sleep 0.1; done"
    here.run("exec", "steadfast-worker-1", "--", "timeout", "60", "sh", "-c", has_rank)
    lost = frozenset(uid(here.read(PODS, name)) for name in (launcher, "steadfast-worker-1"))
    here.run("delete", "pod", launcher, "steadfast-worker-1", "--wait=false")
    return ThreeJobs(here, open_shell(here, ROOT, tmp_path_factory.mktemp("guides") / "kubeconfig"), lost)


def manifests(guide: str) -> list[Obj]:
    """Return the objects of the `yaml` blocks of a guide."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / guide).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [each for block in blocks for each in yaml.safe_load_all(block)]


def pods_of(job: str, role: str) -> str:
    """Return the selector of the Pods of a job in a role: `LAUNCHER` or `WORKER`."""
    return f"{role},training.kubeflow.org/job-name={job}"


def uid(obj: Obj) -> str:
    return str(obj["metadata"]["uid"])


# Writing a job


def test_the_smallest_job_computes(three_jobs: ThreeJobs) -> None:
    said = three_jobs.shell.follow("docs/jobs.md", "The smallest job")
    assert "rank 1 of 2 runs on smallest-worker-1" in said, "without -n there are as many ranks as slots"
    assert "pi is approximately 3.14" in said
    assert len(three_jobs.here.read_all(PODS, pods_of("smallest", WORKER))) == 2, "nothing said of it, workers stay"


def test_a_running_job_is_inspected_scaled_suspended_and_resumed(three_jobs: ThreeJobs) -> None:
    here, shell = three_jobs.here, three_jobs.shell
    until_true(here, "pi", "Running")
    hosts = [f"pi-worker-{index}.pi.{here.namespace}.svc" for index in range(3)]
    assert shell.follow("docs/jobs.md", "Slots and ranks") == "".join(f"{host} slots=1\n" for host in hosts[:2])
    assert set(shell.follow("docs/jobs.md", "Scaling").splitlines()[1:]) >= set(hosts[:2])
    by_now = here.until_one(CONFIG_MAPS, "pi-config", lambda found: hosts[2] in found["data"]["discover_hosts.sh"])["data"]
    here.run("patch", "configmap", "pi-config", "--type=merge", "--patch", json.dumps({"data": {"hostfile": "nobody slots=1\n"}}))
    here.until_one(CONFIG_MAPS, "pi-config", lambda found: found["data"] == by_now)
    before = frozenset(uid(pod) for pod in here.read_all(PODS, "training.kubeflow.org/job-name=pi"))
    shell.follow("docs/jobs.md", "Suspend and resume")
    let_run(here, running_launcher(here, "pi", but=before))
    until_true(here, "pi", "Succeeded")


# What is tried again


def test_a_launcher_whose_pod_is_deleted_is_tried_again(three_jobs: ThreeJobs) -> None:
    here = three_jobs.here
    let_run(here, running_launcher(here, "struck", but=three_jobs.lost))
    until_true(here, "struck", "Succeeded")
    assert here.read(JOBS, "struck-launcher")["status"]["failed"] == 1, "a Pod that was deleted is a try that failed"


def test_a_worker_lost_beneath_mpirun_costs_one_try(three_jobs: ThreeJobs) -> None:
    here = three_jobs.here
    until_true(here, "steadfast", "Succeeded")
    ends = {phase(pod): pod["metadata"]["name"] for pod in here.read_all(PODS, pods_of("steadfast", LAUNCHER))}
    assert sorted(ends) == ["Failed", "Succeeded"]
    assert "rank 1 of 2 runs on steadfast-worker-1" in here.run("logs", ends["Succeeded"]), "on the worker that was made again"
    failed, *reported = three_jobs.shell.follow("docs/fault-tolerance.md", "A job with retries").splitlines()
    assert failed == "1"
    assert sum("MPIJobRunning" in line and "is running" in line for line in reported) == 2, (
        "one event and one condition: it ran all the time"
    )
    assert reported[-1].startswith("Succeeded True MPIJobSucceeded: ")


def test_each_test_that_the_guide_names_is_there() -> None:
    guide = ROOT / FAULTS_GUIDE
    named = re.findall(r"\]\((\S+?\.py)\)::(test_\w+)", guide.read_text(encoding="utf-8"))
    assert named
    assert [(path, name) for path, name in named if not has_test(guide.parent / path, name)] == []


def has_test(path: Path, name: str) -> bool:
    """Return whether the file has a test of that name."""
    return re.search(rf"^(async )?def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
