"""Fields of Pods in the short forms of options, such as `key=value:NoSchedule`, and as Kubernetes wants them."""

from collections.abc import Mapping
from typing import Any, Final

from mpiop.api.slots import GPUS
from mpiop.client.errors import InvalidError
from mpiop.client.quantities import check_size
from mpiop.kube.text import whole_number

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION: Final = f"KEY[=VALUE][:EFFECT], with an effect of {', '.join(_EFFECTS)}"


def toleration(text: str) -> dict[str, str]:
    """Return the toleration `KEY[=VALUE][:EFFECT]`; without a value it tolerates each, without an effect all.

    Raises:
        InvalidError: It has another form.
    """
    rest, has_effect, effect = text.rpartition(":")
    key, has_value, value = (rest if has_effect else text).partition("=")
    if not key or (has_effect and effect not in _EFFECTS):
        raise InvalidError(f"toleration {text!r}: write {_TOLERATION}")
    return {
        "key": key,
        **({"operator": "Equal", "value": value} if has_value else {"operator": "Exists"}),
        **({"effect": effect} if has_effect else {}),
    }


def gpu_limits(gpus: int | str) -> dict[str, str]:
    """Return the limits for a number of GPUs, of NVIDIA or, as in `amd.com/gpu=2`, of another vendor; {} for none.

    Raises:
        InvalidError: It has another form, or is negative.
    """
    resource, named, number = str(gpus).rpartition("=")
    count = whole_number(number)
    if count is None or (named and "/" not in resource):
        raise InvalidError(f"gpus {gpus}: write a number, or with another vendor's resource {GPUS[1]}=2")
    return {resource or GPUS[0]: str(count)} if count else {}


def empty_dirs(sizes: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return volumes that are empty when a Pod starts, and their mounts, from their sizes by path; "" is without a limit.

    Raises:
        InvalidError: A path is relative, or a size is not a number of bytes.
    """
    volumes: list[dict[str, Any]] = []
    for path, size in sizes.items():
        if not path.startswith("/"):
            raise InvalidError(f"empty-dir {path}: the path must be absolute")
        check_size("empty-dir size", size)
        volumes.append({"name": f"empty-{len(volumes)}", "emptyDir": {"sizeLimit": size} if size else {}})
    return volumes, [{"name": volume["name"], "mountPath": path} for volume, path in zip(volumes, sizes, strict=True)]
