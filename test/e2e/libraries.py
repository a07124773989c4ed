"""MPI libraries, and jobs that use one: in an image with an sshd, or in a plain one."""

from typing import Final

import yaml

from e2e.jobs import EXAMPLES, launcher_container, pi_job
from e2e.kubectl import Obj

IMPLEMENTATIONS: Final = {
    "openmpi": "OpenMPI",
    "openmpi5": "OpenMPI",
    "mpich": "MPICH",
    "mpich5": "MPICH",
    "mpich-debian": "MPICH",
    "intel": "Intel",
}
"""By tag of the image `mpiop.invalid/mpi-pi`, which has an sshd."""
LIBRARIES: Final = tuple(tag for tag in IMPLEMENTATIONS if tag != "mpich-debian")
"""Those of which there is a plain image too, whose tag begins with `plain-`."""
SSHD_IMAGES: Final = ("pi", *(f"pi-{library}" for library in LIBRARIES if library != "openmpi"))
"""In the catalogue."""
PLAIN_IMAGES: Final = ("agent", *(f"plain-{library}" for library in LIBRARIES))
"""In the catalogue, with what their jobs need besides."""


def sshd_job(library: str, name: str = "pi", *, workers: int = 2) -> Obj:
    """Return the example's MPIJob with another library, in an image with an sshd."""
    job = pi_job(name, workers=workers)
    launcher_container(job)["args"] = ["-n", str(workers), "/home/mpiuser/pi", "1000000"]
    return with_library(job, library, library)


def plain_job(library: str, name: str = "pi", *, workers: int = 3) -> Obj:
    """Return the plain example's MPIJob with another library."""
    job: Obj = yaml.safe_load((EXAMPLES / "pi" / "pi-plain.yaml").read_text(encoding="utf-8"))
    job["metadata"]["name"] = name
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    launcher_container(job)["args"] = ["-n", str(workers), "pi", "1000000"]
    return with_library(job, library, f"plain-{library}")


def plain_image(library: str) -> str:
    """Return the name of the image with that library and without an sshd."""
    tag = f"plain-{library}"
    return f"mpiop.invalid/mpi-pi:{tag}"


def with_library(job: Obj, library: str, tag: str) -> Obj:
    """Return `job`, changed to use a library in the image with that tag."""
    job["spec"]["mpiImplementation"] = IMPLEMENTATIONS[library]
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["containers"][0]["image"] = f"mpiop.invalid/mpi-pi:{tag}"
    return job
