"""Defaults of options, from a file of the user: the image, the queue and the namespace."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from mpiop.kubectl.verbs import VERBS

FILE: Final = "MPIOP_CONFIG"
"""Variable with the path of the file; by default it is `mpiop/config.yaml` where the user's configuration is."""
_OF_VERBS: Final[Mapping[str, tuple[str, ...]]] = {"namespace": tuple(VERBS), "image": ("run", "submit", "convert"), "queue": ("run",)}
"""What the file may set, and for which verbs: `doctor --run` needs an image with Open MPI, which another one may lack."""


def defaults() -> dict[str, dict[str, str]]:
    """Return the defaults of options by verb, as click takes them; options and the environment win.

    Raises:
        InvalidError: The file is not what it must be.
    """
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - it stays as it is without a home
    path = Path(os.environ.get(FILE) or f"{folder}/mpiop/config.yaml")
    if FILE not in os.environ and not path.exists():
        return {}
    settings = _read(path)
    return {verb: {name: value for name, value in settings.items() if verb in _OF_VERBS[name]} for verb in VERBS}


def _read(path: Path) -> Mapping[str, str]:
    from mpiop.client.errors import InvalidError  # noqa: PLC0415 - takes time, and few users have such a file
    from mpiop.kubectl.inputs import read_text  # noqa: PLC0415
    from mpiop.kubectl.yaml_text import read_yaml  # noqa: PLC0415

    found, *others = [text.value for text in read_yaml(str(path), read_text(str(path)))] or [{}]
    settings = cast("dict[str, Any]", found) if isinstance(found, dict) else {"": found}
    if others or not all(name in _OF_VERBS and isinstance(value, str) for name, value in settings.items()):
        raise InvalidError(f"{path}: write lines such as image: IMAGE, with the names {', '.join(_OF_VERBS)}, each with a text")
    return settings
