"""hostfile and discover_hosts.sh."""

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_jobs import PI, with_workers
from mpiop.api.most_workers import CONFIG_MAP_BYTES, most_workers
from mpiop.api.names import worker_name
from mpiop.api.types import MPIJob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import DISCOVER_HOSTS, HOSTFILE, build_config_map

CASES = {
    "Open MPI": ({}, "", "pi-worker-0.pi.default.svc slots=1\npi-worker-1.pi.default.svc slots=1\n"),
    "slots": ({"slots_per_worker": 8}, "", "pi-worker-0.pi.default.svc slots=8\npi-worker-1.pi.default.svc slots=8\n"),
    "Intel": ({"mpi_implementation": "Intel"}, "", "pi-worker-0.pi.default.svc:1\npi-worker-1.pi.default.svc:1\n"),
    "MPICH": ({"mpi_implementation": "MPICH"}, "", "pi-worker-0.pi.default.svc:1\npi-worker-1.pi.default.svc:1\n"),
    "a cluster domain": (
        {"mpi_implementation": "MPICH"},
        "example.com",
        "pi-worker-0.pi.default.svc.example.com:1\npi-worker-1.pi.default.svc.example.com:1\n",
    ),
    "the launcher works, too": (
        {"run_launcher_as_worker": True, "slots_per_worker": 2},
        "",
        "pi-launcher.pi.default.svc slots=2\npi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=2\n",
    ),
    "no workers": ({"worker": None}, "", ""),
    "no workers but a launcher that works": (
        {"worker": None, "run_launcher_as_worker": True},
        "",
        "pi-launcher.pi.default.svc slots=1\n",
    ),
}


def rendered(file: str, job: MPIJob, running: Iterable[str] = (), cluster_domain: str = "") -> str:
    """Return a file of the ConfigMap of a job."""
    text: str = build_config_map(job, running, BuildOptions(cluster_domain=cluster_domain))["data"][file]
    return text


@pytest.mark.parametrize(("changes", "domain", "text"), CASES.values(), ids=CASES)
def test_hostfile(changes: dict[str, object], domain: str, text: str) -> None:
    job = replace(PI, **changes)  # type: ignore[arg-type]  # a column of a table
    assert rendered(HOSTFILE, job, cluster_domain=domain) == text


@given(workers=st.integers(0, 300), slots=st.integers(0, 10**6), launcher_works=st.booleans())
def test_every_host_is_listed_once_by_index(workers: int, slots: int, launcher_works: bool) -> None:  # noqa: FBT001 - hypothesis
    job = replace(with_workers(PI, workers), slots_per_worker=slots, run_launcher_as_worker=launcher_works)
    lines = rendered(HOSTFILE, job).splitlines()
    pods = ["pi-launcher"] * launcher_works + [worker_name(job.name, index) for index in range(workers)]
    assert [line.split(".")[0] for line in lines] == pods
    assert all(line.endswith(f".pi.default.svc slots={slots}") for line in lines)


def test_discover_hosts_without_a_running_worker_prints_nothing() -> None:
    assert rendered(DISCOVER_HOSTS, PI) == "#!/bin/sh\n"


def test_discover_hosts_sorts_as_strings() -> None:
    running = ["pi-worker-2", "pi-worker-10", "pi-worker-0"]
    hosts = [f"pi-{name}.pi.default.svc.example.com" for name in ("launcher", "worker-0", "worker-10", "worker-2")]
    job = replace(PI, run_launcher_as_worker=True)
    assert rendered(DISCOVER_HOSTS, job, running, "example.com") == "#!/bin/sh\n" + "".join(f"echo {host}\n" for host in hosts)


def test_discover_hosts_runs() -> None:
    script = rendered(DISCOVER_HOSTS, PI, ["pi-worker-1", "pi-worker-0"])
    output = subprocess.run([shutil.which("sh") or "", "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["pi-worker-0.pi.default.svc", "pi-worker-1.pi.default.svc"]


@pytest.mark.parametrize(("name", "namespace"), [("a", "a"), ("pi", "default"), ("a" * 50, "b" * 63)])
def test_only_jobs_are_refused_whose_hosts_fit_into_no_config_map(name: str, namespace: str) -> None:
    one_more = most_workers(name, namespace) + 1
    job = with_workers(replace(PI, name=name, namespace=namespace, mpi_implementation="MPICH"), one_more)
    files = rendered(HOSTFILE, job) + rendered(DISCOVER_HOSTS, job, job.worker_names)
    assert CONFIG_MAP_BYTES < len(files) < 1.1 * CONFIG_MAP_BYTES
