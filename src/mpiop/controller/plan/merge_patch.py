"""The merge patch that makes an observed object agree with a desired one in the fields that the desired one sets."""

from collections.abc import Mapping
from typing import Any, cast


def merge_patch(desired: Mapping[str, Any], current: Mapping[str, Any], *, whole: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the JSON merge patch (RFC 7386) from `current` to `desired`; {} when nothing that we set differs.

    Absent equals empty, since the API server leaves out false, 0, "" and []: without that an object is patched for ever.

    Args:
        desired: The fields that we set.
        current: The object as observed; what `desired` does not name stays as it is.
        whole: Names of fields that are ours with all that is in them: what `desired` does not have there is removed.
    """
    return _patch(desired, current, whole=whole, is_ours=False)


def _patch(desired: Mapping[str, Any], current: Mapping[str, Any], *, whole: frozenset[str], is_ours: bool) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(current.keys() - desired.keys()) if is_ours else {}
    for name, value in desired.items():
        old = current.get(name)
        if isinstance(value, dict) and isinstance(old, dict):  # as JSON has them; to ask for any Mapping is slow
            new_fields, old_fields = cast("dict[str, Any]", value), cast("dict[str, Any]", old)
            if inner := _patch(new_fields, old_fields, whole=whole, is_ours=is_ours or name in whole):
                patch[name] = inner
        elif value != old and (value or old or (is_ours and name not in current)):
            patch[name] = value
    return patch
