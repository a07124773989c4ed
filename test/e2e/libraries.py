"""MPI libraries, and jobs that use one: in an image with an sshd, or in a plain one."""

from typing import Final

import yaml

from e2e.jobs import EXAMPLES, launcher_container, pi_job
from e2e.kubectl import Obj

LIBRARIES: Final = {"openmpi": "OpenMPI", "openmpi5": "OpenMPI", "mpich": "MPICH", "mpich5": "MPICH", "intel": "Intel"}
"""Values of `mpiImplementation`, by tag of the image `mpioperator/mpi-pi`; the tag of the plain image begins with `plain-`."""
_INTERVALS: Final = "1000000"


def sshd_job(library: str, name: str = "pi", *, workers: int = 2) -> Obj:
    """Return the example's MPIJob with another library, in an image with an sshd."""
    return _with_library(pi_job(name), library, library, "/home/mpiuser/pi", workers)


def plain_job(library: str, name: str = "pi", *, workers: int = 3) -> Obj:
    """Return the plain example's MPIJob with another library."""
    job: Obj = yaml.safe_load((EXAMPLES / "pi" / "pi-plain.yaml").read_text(encoding="utf-8"))
    job["metadata"]["name"] = name
    return _with_library(job, library, f"plain-{library}", "pi", workers)


def _with_library(job: Obj, library: str, tag: str, program: str, workers: int) -> Obj:
    job["spec"]["mpiImplementation"] = LIBRARIES[library]
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["image"] = f"mpioperator/mpi-pi:{tag}"
    launcher_container(job)["args"] = ["-n", str(workers), program, _INTERVALS]
    return job
