"""Counts the slots of a worker from its resources, for `mpiop.kubeflow.org/slots: Auto`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mpiop.api.fields import INT32_MAX
from mpiop.kube.quantity import is_quantity, value_of

GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
"""Resources that count whole GPUs; others of the same vendors count memory or shares of one."""


def slots_of(template: Mapping[str, Any]) -> int:
    """Return one slot for each GPU of the first container, else one for each whole CPU; at least 1.

    A limit counts where there is no request, as for the API server. Invalid quantities are skipped: the API server refuses the pod.
    """
    containers: Sequence[Mapping[str, Any]] = template.get("spec", {}).get("containers") or ({},)
    resources = containers[0].get("resources", {})
    asked = {**resources.get("limits", {}), **resources.get("requests", {})}
    slots = sum(_whole(asked.get(gpu)) for gpu in GPUS) or _whole(asked.get("cpu"))
    return max(1, min(slots, INT32_MAX))


def _whole(quantity: object) -> int:
    """Return the whole part of a quantity, 0 for what is none, or less than nothing."""
    if isinstance(quantity, str):
        return max(0, int(value_of(quantity))) if is_quantity(quantity) else 0
    return int(max(0, min(INT32_MAX, quantity))) if isinstance(quantity, int | float) else 0
