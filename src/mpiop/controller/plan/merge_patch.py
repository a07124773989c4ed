"""The merge patch that makes an observed object agree with a desired one in the fields that the desired one sets."""

from collections.abc import Mapping
from typing import Any, cast


def merge_patch(wanted: Mapping[str, Any], have: Mapping[str, Any], *, whole: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the JSON merge patch (RFC 7386) from `have` to `wanted`; {} when nothing that we set differs.

    Absent equals empty, since the API server leaves out false, 0, "" and []: without that an object is patched for ever.

    Args:
        wanted: The fields that we set.
        have: The object as observed; what `wanted` does not name stays as it is.
        whole: Names of fields that are ours with all that is in them: what `wanted` does not have there is removed.
    """
    return _patch(wanted, have, whole=whole, is_ours=False)


def _patch(wanted: Mapping[str, Any], have: Mapping[str, Any], *, whole: frozenset[str], is_ours: bool) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(have.keys() - wanted.keys()) if is_ours else {}
    for name, value in wanted.items():
        current = have.get(name)
        if isinstance(value, dict) and isinstance(current, dict):  # as JSON has them; to ask for any Mapping is slow
            values, currents = cast("dict[str, Any]", value), cast("dict[str, Any]", current)
            if inner := _patch(values, currents, whole=whole, is_ours=is_ours or name in whole):
                patch[name] = inner
        elif value != current and (value or current or (is_ours and name not in have)):
            patch[name] = value
    return patch
