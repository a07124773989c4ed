"""The defaults of replica specs; those of other fields are in `spec_fields`.

An empty restart policy means "not set", as it does for the Go operator.
"""

from typing import Final

from mpiop.api import constants as c

LAUNCHER_REPLICAS: Final = 1
WORKER_REPLICAS: Final = 1
LAUNCHER_RESTART_POLICY: Final = c.ON_FAILURE
WORKER_RESTART_POLICY: Final = c.NEVER
LAUNCHER_CONTAINER_NAME: Final = c.ROLE_LAUNCHER
WORKER_CONTAINER_NAME: Final = c.ROLE_WORKER
