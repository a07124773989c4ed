"""Ranks are not bound to the cores of a neighbour in jobs whose ssh is the operator's (docs/binding.md)."""

import os
import re

import pytest

from e2e.clusters import IS_CURRENT
from e2e.jobs import launcher_container, pi_job, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import plain_job

SHOW_CORES = "sed -n 's/^Cpus_allowed_list:[^0-9]*/may use /p' /proc/self/status"
CORES = len(os.sched_getaffinity(0))
LIBRARIES = ("openmpi", "openmpi5", "intel")
"""Those that bind ranks when nobody reports anything; MPICH does not."""
IMAGES = ("agent", *(f"plain-{library}" for library in LIBRARIES))


def showing_cores(job: Obj) -> Obj:
    """Return `job` with one rank, which prints the cores that it may use."""
    if job["spec"]["mpiImplementation"] == "Intel":  # binds when the program calls MPI_Init, and then prints it
        launcher_container(job)["args"] = ["-n", "1", "pi", "1000"]
        launcher_container(job)["env"] = [{"name": "I_MPI_DEBUG", "value": "4"}]
    else:
        launcher_container(job)["args"] = ["-n", "1", "sh", "-c", SHOW_CORES]
    return job


def cores_of(here: Kubectl, name: str) -> str:
    """Return the cores that the rank of a job may use, when it has succeeded."""
    until_true(here, name, "Succeeded")
    log = here.run("logs", f"job/{name}-launcher")
    [cores] = re.findall(r"may use (\S+)", log) or re.findall(r"startup\(\): 0 .*\{(\S+)\}", log)
    return str(cores)


@pytest.mark.skipif(CORES < 2, reason="there is no other core to be bound to")
@pytest.mark.skipif(IS_CURRENT, reason="the user's own cluster does not have the cores of this machine")
@pytest.mark.usefixtures("images")
def test_jobs_on_one_node_are_bound_to_the_same_core_unless_their_ssh_is_ours(namespace: Kubectl) -> None:
    by_image = [showing_cores(pi_job(name, workers=1)) for name in ("left", "right")]
    by_us = [showing_cores(plain_job(library, f"plain-{library}", workers=1)) for library in LIBRARIES]
    namespace.apply(*by_image, *by_us)
    left, right = (cores_of(namespace, name) for name in ("left", "right"))
    assert left == right
    assert "-" not in left
    assert {cores_of(namespace, f"plain-{library}") for library in LIBRARIES} == {f"0-{CORES - 1}"}
