"""Who runs a job: an MPI operator, or another program by `spec.runPolicy.managedBy`."""

from collections.abc import Mapping
from typing import Any

from mpiop.api import constants as c
from mpiop.api.fields import as_mapping


def other_manager(raw: Mapping[str, Any]) -> str | None:
    """Return who runs the MPIJob, which may hold anything, in place of an MPI operator; None if nobody does."""
    spec = as_mapping(raw.get("spec")) or {}
    manager = (as_mapping(spec.get("runPolicy")) or {}).get("managedBy")
    return manager if isinstance(manager, str) and manager != c.MANAGED_BY_US else None
