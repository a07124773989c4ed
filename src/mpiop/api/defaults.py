"""Every default of the MPIJob, once: the parser applies them in memory, and those the CRD names too are taken from here.

An empty string means "not said" for the SSH mount path, the launcher's creation policy and the restart policies, as it does for the Go
operator.
"""

from typing import Final

from mpiop.api import constants as c
from mpiop.api.mpi_implementations import OPEN_MPI

SLOTS_PER_WORKER: Final = 1
RUN_LAUNCHER_AS_WORKER: Final = False
SSH_AUTH_MOUNT_PATH: Final = c.DEFAULT_SSH_AUTH_MOUNT_PATH
LAUNCHER_CREATION_POLICY: Final = c.AT_STARTUP
MPI_IMPLEMENTATION: Final = OPEN_MPI.name
CLEAN_POD_POLICY: Final = c.CLEAN_NONE
SUSPEND: Final = False
LAUNCHER_REPLICAS: Final = 1
WORKER_REPLICAS: Final = 1
LAUNCHER_RESTART_POLICY: Final = c.ON_FAILURE
WORKER_RESTART_POLICY: Final = c.NEVER
LAUNCHER_CONTAINER_NAME: Final = c.ROLE_LAUNCHER
WORKER_CONTAINER_NAME: Final = c.ROLE_WORKER
