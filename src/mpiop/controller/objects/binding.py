"""Which jobs bind no rank to cores (docs/binding.md).

In each pod `mpirun` sees all cores of the node and binds ranks from the first one on, so jobs that share a node share its first cores. That
is left to the image's `mpirun`, as with the reference operator, unless the job's ssh is ours.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mpiop.api.mpi_implementations import IMPLEMENTATIONS
from mpiop.api.types import MPIJob
from mpiop.controller.objects.pod_template import section
from mpiop.kube.quantity import is_quantity, value_of

_CHOICE: Final = re.compile("|".join(row.binding_choice for row in IMPLEMENTATIONS.values() if row.binding_choice))
"""Matches options and variables about binding, of any library."""


def launcher_environment(job: MPIJob) -> Mapping[str, str]:
    """Return the variables that make the `mpirun` of a job whose ssh is ours bind no rank.

    There are none if the workers may have cores of their own, or if the launcher has an option or variable about binding.
    """
    if job.worker is None:
        return {}
    return {} if _may_own_cores(job.worker.container) or _has_choice(job.launcher.container) else job.library.unbound


def _may_own_cores(container: Mapping[str, Any]) -> bool:
    """Return whether the kubelet's static CPU manager would give the container cores: a whole number, which is request and limit."""
    resources = section(container, "resources")
    limit = section(resources, "limits").get("cpu")
    request = section(resources, "requests").get("cpu", limit)
    values = [value_of(str(each)) for each in (limit, request) if is_quantity(str(each))]
    return len(values) == 2 and values[0] == values[1] >= 1 and values[0].denominator == 1  # noqa: PLR2004 - both are quantities


def _has_choice(container: Mapping[str, Any]) -> bool:
    variables: Sequence[Mapping[str, Any]] = container.get("env") or ()
    words = [*(container.get("command") or ()), *(container.get("args") or ()), *(str(variable.get("name")) for variable in variables)]
    return any(_CHOICE.search(word) for word in words)
