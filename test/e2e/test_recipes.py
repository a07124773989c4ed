"""The guides for one need each (mpi4py, GPUs, shared memory, …): their commands as their readers type them, side by side."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import yaml

from e2e.clusters import IS_CURRENT, ROOT
from e2e.jobs import held, launcher_container, pi_job, until_true, with_script
from e2e.kubectl import Kubectl, Obj
from e2e.shell import Shell, open_shell
from e2e.test_guides import manifests
from e2e.volumes import checkpoint_volume

IMAGES = ("mpi4py",)
BINARIES = ROOT / ".venv" / "bin"


@pytest.fixture(scope="module")
def volume(cluster: Kubectl, module_namespace: Kubectl) -> Iterator[None]:
    """A volume that all workers may write, for the claim of the example; the cluster has no storage class."""
    if IS_CURRENT:
        pytest.skip("the user's own cluster has neither the volume nor the image")
    with checkpoint_volume(cluster, module_namespace.namespace):
        yield


def job_without_an_interface() -> Obj:
    """Return a job whose daemons look for an interface that is not there."""
    job = with_script(pi_job("nowhere"), 'export OMPI_MCA_oob_tcp_if_include=nosuch0; exec "$@"')
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    return job


def job_with_a_rank_that_raises() -> Obj:
    """Return a job of two ranks: one raises an exception, the other waits for it."""
    program = 'from mpi4py.MPI import COMM_WORLD as world; assert world.rank == 0, "no input"; world.Barrier()'
    [job] = [each for each in blocks_of("docs/mpi4py.md") if each["kind"] == "MPIJob"]
    job["metadata"]["name"] = "raises"
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    launcher_container(job)["command"] = ["mpirun", "python3", "-m", "mpi4py", "-c", program]
    return job


def blocks_of(guide: str) -> list[Obj]:
    """Return the objects that the commands of a guide apply from standard input."""
    texts = re.findall(r"<<'END'\n(apiVersion.*?)^END$", (ROOT / guide).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [each for text in texts for each in yaml.safe_load_all(text)]


def job_bound_to_cores() -> Obj:
    """Return a job of two workers with two ranks each, which print where they run and what they may use."""
    cores = "echo $(hostname) may use core $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)"
    job = pi_job("bound")
    job["spec"]["slotsPerWorker"] = 2
    launcher_container(job)["args"] = ["--bind-to", "core", "sh", "-c", cores]
    return job


@pytest.fixture(scope="module")
def shown(
    images: None, module_namespace: Kubectl, volume: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[str]]]:
    """Follow all guides at the same time, for their jobs wait more than they compute; each answer is what its commands printed."""
    assert (images, volume) == (None, None)
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "examples").symlink_to(ROOT / "examples")
    plain = open_shell(module_namespace, folder, folder / "kubeconfig")
    shell = Shell({**plain.environment, "PATH": f"{BINARIES}{os.pathsep}{plain.environment['PATH']}"}, folder)
    recipes = {
        "mpi4py": ("docs/mpi4py.md", "A manifest"),
        "library": ("docs/mpi4py.md", "An image"),
        "shared-memory": ("docs/shared-memory.md", "Shared memory"),
        "volumes": ("docs/volumes.md", "A job that continues"),
        "binding": ("docs/binding.md", "Bind nothing"),
        "interfaces": ("docs/networks.md", "Several networks, RDMA"),
        "networks": ("docs/networks.md", "Which interface"),
        "ucx": ("docs/networks.md", "UCX"),
        "slurm": ("docs/slurm.md", "A batch script"),
        "gpu": ("docs/gpu.md", "Are there GPUs?"),
    }
    module_namespace.apply(held(pi_job("smallest")), job_without_an_interface(), job_bound_to_cores(), job_with_a_rank_that_raises())
    until_true(module_namespace, "smallest", "Running")
    with ThreadPoolExecutor(len(recipes)) as pool:
        yield {name: pool.submit(shell.follow, *recipe) for name, recipe in recipes.items()}


def test_a_python_program_runs_from_a_config_map(shown: Mapping[str, Future[str]]) -> None:
    said = shown["mpi4py"].result()
    assert sorted(re.findall(r"rank (\d) of 4 on integrate-worker-(\d)", said)) == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]
    assert "pi is approximately 3.14159265" in said


def test_the_library_of_mpi4py_is_that_of_the_image(shown: Mapping[str, Future[str]]) -> None:
    assert shown["library"].result().count("2 Open MPI v4.1") == 2, "two ranks that know each other"


def test_a_rank_that_raises_ends_the_others(module_namespace: Kubectl, shown: Mapping[str, Future[str]]) -> None:
    assert shown
    until_true(module_namespace, "raises", "Failed")


def test_shared_memory_has_the_size_that_the_volume_says(shown: Mapping[str, Future[str]]) -> None:
    assert shown["shared-memory"].result().count("512M   0% /dev/shm") == 2


def test_a_suspended_job_continues_from_its_checkpoint(shown: Mapping[str, Future[str]]) -> None:
    log = shown["volumes"].result().splitlines()
    [after] = [int(found[1]) for line in log if (found := re.fullmatch(r"goes on after round (\d+)", line))]
    assert 3 <= after < 80
    assert f"round {after + 1} of 80" in log
    assert log[-1].startswith("pi is approximately 3.1")


def test_unbound_ranks_may_use_all_cores_of_the_node(shown: Mapping[str, Future[str]]) -> None:
    cores = set(re.findall(r"Cpus_allowed_list:\s+(\S+)", shown["binding"].result()))
    assert cores == {open_range(os.sched_getaffinity(0))}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks of a worker are bound to two cores")
def test_workers_of_one_node_bind_their_ranks_to_the_same_cores(module_namespace: Kubectl, shown: Mapping[str, Future[str]]) -> None:
    assert shown
    until_true(module_namespace, "bound", "Succeeded")
    found = re.findall(r"bound-worker-(\d) may use core (\S+)", module_namespace.run("logs", "job/bound-launcher"))
    first, second = (sorted(core for worker, core in found if worker == index) for index in "01")
    assert first == second
    assert len(set(first)) == 2


def open_range(cores: set[int]) -> str:
    """Return the cores as the kernel writes them, if there is no gap."""
    first, last = min(cores), max(cores)
    return str(first) if first == last else f"{first}-{last}"


def test_a_pod_shows_its_interfaces(shown: Mapping[str, Future[str]]) -> None:
    assert re.findall(r"^ *(\S+):", shown["interfaces"].result(), re.MULTILINE) == ["lo", "eth0"]


def test_ranks_use_the_interface_that_they_are_told(shown: Mapping[str, Future[str]]) -> None:
    assert "pi is approximately 3.14" in shown["networks"].result()


def test_ranks_in_two_pods_talk_by_ucx(shown: Mapping[str, Future[str]]) -> None:
    assert re.search(r"^\d+\.\d us, \d+\.\d\d GB/s$", shown["ucx"].result(), re.MULTILINE)


def test_an_interface_that_is_not_there_is_an_error_of_the_library(module_namespace: Kubectl, shown: Mapping[str, Future[str]]) -> None:
    assert shown
    until_true(module_namespace, "nowhere", "Failed")
    assert "nosuch0" in module_namespace.run("logs", "job/nowhere-launcher")


def test_a_slurm_script_becomes_a_job(shown: Mapping[str, Future[str]]) -> None:
    said = shown["slurm"].result()
    assert sorted(re.findall(r"rank (\d) of 4", said)) == list("0123")


def test_gpus_are_shown_by_node(shown: Mapping[str, Future[str]]) -> None:
    header, *rows = shown["gpu"].result().splitlines()
    assert header.split() == ["NODE", "GPUS"]
    assert rows


@pytest.mark.parametrize("guide", ["docs/fault-tolerance.md", "docs/gpu.md"])
def test_the_manifests_are_valid(guide: str, module_namespace: Kubectl) -> None:
    jobs = manifests(guide)
    assert jobs
    for job in jobs:
        module_namespace.run("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(job))
