"""Plain images: a library and programs, no ssh, no sshd, no user, under Pod Security `restricted`; the operator brings mpiop-agent.

MPIOP_E2E_RUNS repeats the runs of all libraries. They run side by side with the other tests of this file.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from e2e.clusters import IS_CURRENT, ROOT, project
from e2e.jobs import (
    LAUNCHER,
    RUNS,
    condition,
    evict,
    has_ended,
    is_true,
    launcher_container,
    launcher_pod,
    pi_job,
    restarts,
    state,
    until_true,
)
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import LIBRARIES, PLAIN_IMAGES, plain_job
from e2e.test_mpi import Outcome, outcome_of, ranks_by_host
from mpiop.kube.resources import MPIJOBS, PODS

IMAGES: Final = ("mpi4py", *PLAIN_IMAGES)
WORKERS: Final = 3
AT_ONCE: Final = 4
LOST_SECONDS: Final = 60
CHECKPOINTS: Final = {"checkpoint-signal": "SIGUSR1", "checkpoint-grace": "12s", "max-restarts": "1"}
SAVING: Final = "trap 'echo saves; sleep 3; echo saved' USR1; echo computes; while :; do sleep 0.1; done"
"""Who ends first would take the other along, in the middle of its work: both run on until they are ended."""
SHARED: Final = ("openmpi", "mpich")
"""Libraries whose launcher shares its namespace of processes with a sidecar, which must get no signal."""
SIDECAR: Final = "trap 'echo disturbed' USR1; echo beside; while :; do sleep 0.1; done"
SPEAK_AND_FAIL: Final = """
/etc/mpi-hosts/ssh pi-worker-0 'head -c 100000000 /dev/zero; echo apart >&2; exit 7' >/tmp/out 2>/tmp/err
code=$?
echo "exit $code: $(wc -c </tmp/out) bytes, $(cat /tmp/err)"
exit $code
"""


def restrict(here: Kubectl) -> Kubectl:
    """Let the namespace refuse each Pod that is not `restricted`."""
    here.run("label", "namespace", here.namespace, "pod-security.kubernetes.io/enforce=restricted")
    return here


@pytest.fixture
def restricted(images: None, namespace: Kubectl) -> Kubectl:
    """A namespace of the test's own."""
    assert images is None
    return restrict(namespace)


def mpi4py_job(library: str, name: str) -> Obj:
    """Return the MPIJob of docs/mpi4py.md, whose program is in the ConfigMap `integrate`, with another library."""
    job = plain_job(library, name)
    launcher_container(job)["args"] = ["-n", str(WORKERS), "python3", "-m", "mpi4py", "/program/integrate.py"]
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["volumes"].append({"name": "program", "configMap": {"name": "integrate"}})
    worker["containers"][0]["volumeMounts"].append({"name": "program", "mountPath": "/program"})
    return job


PROGRAMS: Final[Mapping[str, tuple[Callable[[str, str], Obj], str]]] = {"c": (plain_job, "runs on"), "mpi4py": (mpi4py_job, "on")}
"""Each with the words by which a rank reports where it is."""


@pytest.fixture(scope="module")
def outcomes(images: None, module_namespace: Kubectl) -> Iterator[Mapping[str, Future[Outcome]]]:
    """The ends of all runs by the name of their job; they are under way."""
    assert images is None
    here = restrict(module_namespace)
    here.run("create", "configmap", "integrate", f"--from-file={ROOT / 'examples/mpi4py/integrate.py'}")
    pool = ThreadPoolExecutor(AT_ONCE)
    runs = itertools.product(PROGRAMS, LIBRARIES, range(1, RUNS + 1))
    jobs = [PROGRAMS[program][0](library, f"{program}-{library}-{attempt}") for program, library, attempt in runs]
    try:
        yield {job["metadata"]["name"]: pool.submit(outcome_of, here, job) for job in jobs}
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("attempt", range(1, RUNS + 1))
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_worker_has_its_rank_at_the_first_try(
    program: str, library: str, attempt: int, outcomes: Mapping[str, Future[Outcome]]
) -> None:
    name = f"{program}-{library}-{attempt}"
    outcome = outcomes[name].result()
    assert is_true(outcome.job, "Succeeded"), f"{condition(outcome.job, 'Failed')}\n{outcome.log}"
    hosts = ranks_by_host(outcome.log, PROGRAMS[program][1])
    assert hosts == dict.fromkeys([f"{name}-worker-{index}" for index in range(WORKERS)], 1), outcome.log
    assert "pi is approximately 3.14159265" in outcome.log
    [launcher] = outcome.launchers
    assert restarts(launcher) == 0, outcome.previous_log
    [container] = launcher["status"]["containerStatuses"]
    assert container["state"]["terminated"]["message"] == "mpirun calls ssh\n", "the job would be reported to have used no worker"


def test_a_rank_has_what_its_container_has(restricted: Kubectl) -> None:
    job = plain_job("openmpi", workers=1)
    [worker] = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    worker["env"] = [{"name": "OF_THE_WORKER", "value": "a value"}]
    worker["workingDir"] = "/usr"
    script = 'echo "$OF_THE_WORKER; $(id -u):$(id -g); $(grep -c :12345: /etc/passwd); $(command -v sshd)|"'
    launcher_container(job)["args"] = ["-n", "1", "/bin/sh", "-c", script]
    restricted.apply(job)
    until_true(restricted, "pi", "Succeeded")
    [launcher] = restricted.read_all(PODS, LAUNCHER)
    log = restricted.run("logs", launcher["metadata"]["name"])
    assert "a value; 12345:12345; 0; |" in log


def test_mpi4py_needs_no_sshd_either(restricted: Kubectl) -> None:
    """Its image has one, which runs as root only; as another user nobody starts it."""
    job = plain_job("openmpi", workers=2)
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["image"] = "mpiop.invalid/mpi4py:openmpi"
    program = "import os; from mpi4py.MPI import COMM_WORLD as world; print(f'user {os.getuid()}, sum {world.allreduce(world.rank + 1)}')"
    launcher_container(job)["args"] = ["-n", "2", "python3", "-m", "mpi4py", "-c", program]
    restricted.apply(job)
    until_true(restricted, "pi", "Succeeded")
    assert restricted.run("logs", "job/pi-launcher").count("user 12345, sum 3") == 2


def test_an_sshd_of_the_image_has_the_jobs_key_too(images: None, namespace: Kubectl) -> None:
    """A worker with a command keeps it, and OpenSSH proves with the key itself that it is of the job."""
    assert images is None
    job = pi_job()
    job["metadata"]["annotations"] = {"mpiop.kubeflow.org/ssh": "Injected"}
    namespace.apply(job)
    until_true(namespace, "pi", "Succeeded")
    [launcher] = namespace.read_all(PODS, LAUNCHER)
    assert ranks_by_host(namespace.run("logs", launcher["metadata"]["name"])) == {"pi-worker-0": 1, "pi-worker-1": 1}


def test_output_and_exit_code_come_through(restricted: Kubectl) -> None:
    job = plain_job("openmpi", workers=1)
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    container = launcher_container(job)
    container["command"], container["args"] = ["/bin/sh", "-c", SPEAK_AND_FAIL], []
    restricted.apply(job)
    until_true(restricted, "pi", "Failed")
    [launcher] = restricted.read_all(PODS, LAUNCHER)
    assert restricted.run("logs", launcher["metadata"]["name"]) == "exit 7: 100000000 bytes, apart\n"


def one_try(library: str, script: str) -> Obj:
    """Return a job, with the name of its library, whose two ranks run a script of `sh`, and which has no retry."""
    job = plain_job(library, library, workers=2)
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    launcher_container(job)["args"] = ["-n", "2", "/bin/sh", "-c", script]
    return job


@pytest.mark.skipif(IS_CURRENT, reason="the nodes of the user's own cluster are out of reach")
def test_mpirun_ends_when_a_worker_stops_answering(restricted: Kubectl) -> None:
    """Nobody is notified: the network of one worker is cut. Without the agent MPICH and Intel MPI hang."""
    restricted.apply(*(one_try(library, "echo running; exec sleep 600") for library in LIBRARIES))
    launchers = {library: launcher_pod(restricted, library) for library in LIBRARIES}
    for launcher in launchers.values():
        with restricted.following(launcher) as lines:
            assert len(list(itertools.islice((line for line in lines if "running" in line), 2))) == 2
    nodes = {library: restricted.read(PODS, f"{library}-worker-1")["spec"]["nodeName"] for library in LIBRARIES}
    for library in LIBRARIES:
        cut_network(f"{library}-worker-1")
    for library, launcher in launchers.items():
        ended = restricted.until_one(MPIJOBS, library, has_ended, timeout_seconds=LOST_SECONDS)
        log = restricted.run("logs", launcher)
        assert is_true(ended, "Failed"), f"{library}: {log}"
        assert re.search(rf"mpiop-agent: {library}-worker-1\S* on node {nodes[library]}: lost: no answer from \S+ for 15s", log), log


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_save_their_work_before_their_pods_are_deleted(library: str, restricted: Kubectl) -> None:
    """By a suspend, and by the eviction of one worker, which signals all ranks."""
    job = one_try(library, SAVING)
    job["metadata"]["annotations"] |= {f"mpiop.kubeflow.org/{name}": text for name, text in CHECKPOINTS.items()}
    if library in SHARED:
        add_sidecar(job)
    restricted.apply(job)
    check_saved(restricted, library, lambda: evict(restricted, f"{library}-worker-1"))
    restricted.until_one(MPIJOBS, library, lambda job: job["status"].get("restarts") == 1 and state(job) == "Running")
    suspension = '--patch={"spec": {"runPolicy": {"suspend": true}}}'
    check_saved(restricted, library, lambda: restricted.run("patch", "mpijob", library, "--type=merge", suspension))
    until_true(restricted, library, "Suspended")


def check_saved(here: Kubectl, name: str, end: Callable[[], object]) -> None:
    """Let both ranks of a job compute, call `end`, and fail unless each has saved its work once when the launcher has ended."""
    launcher = launcher_pod(here, name)
    with here.following(launcher) as lines, here.following(launcher, "--all-containers") as all_lines:
        assert len(list(itertools.islice((line for line in lines if "computes" in line), 2))) == 2
        end()
        rest = list(lines)
        everything = list(all_lines)
    assert sum("saved" in line for line in rest) == 2, rest
    assert ("beside\n" in everything) == (name in SHARED), everything
    assert "disturbed\n" not in everything, everything


def add_sidecar(job: Obj) -> None:
    """Let the launcher share its namespace of processes with another container."""
    pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    sidecar = {**launcher_container(job), "name": "beside", "command": ["/bin/sh", "-c", SIDECAR], "args": [], "restartPolicy": "Always"}
    pod |= {"shareProcessNamespace": True, "initContainers": [sidecar]}


def cut_network(worker: str) -> None:
    """Take the network from the Pod, whose processes are processes of this machine."""
    [pid] = [
        command.parent.name
        for command in Path("/proc").glob("[0-9]*/cmdline")
        if content(command).startswith("/opt/mpiop/mpiop-agent\0sshd") and content(command.parent / "root/etc/hostname").strip() == worker
    ]
    project("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "set", "eth0", "down")


def content(file: Path) -> str:
    """Return what the file of a process reports, "" if that has ended."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
