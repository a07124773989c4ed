"""Reads kubeconfig files and stores them; what is in them is the affair of `kubeconfig`."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, EBUSY, EPERM, EROFS
from pathlib import Path
from typing import Any, Final, cast

import yaml

from mpiop.kube.errors import ConfigError

_FAILURES: Final = (yaml.YAMLError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What PyYAML raises for a file that is not YAML; those from ValueError on are not part of its design."""

_NO_NEW_FILE: Final = frozenset({EACCES, EPERM, EROFS, EBUSY})
"""A folder takes no new file, or the file is a mount of its own, as in a container."""


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """A file that exists and is not empty.

    Attributes:
        path: Absolute, links not resolved.
        content: May be changed, for `save`.
    """

    path: Path
    content: dict[str, Any]

    def save(self) -> None:
        """Replace the file atomically: readers and a full disk never see half of a kubeconfig.

        Raises:
            OSError: It cannot be written.
        """
        target = Path(os.path.realpath(self.path))
        text = yaml.safe_dump(self.content, default_flow_style=False).encode()
        try:
            _replace(target, text)
        except OSError as error:
            if error.errno not in _NO_NEW_FILE:
                raise
            target.write_bytes(text)


def read_kubeconfigs(paths: Sequence[Path]) -> list[KubeconfigFile]:
    """Return the files of `paths` in their order, each once; missing and empty ones do not count, as for client-go.

    Raises:
        ConfigError: One cannot be read. The message has nothing of its content, which may be a token.
    """
    found: list[KubeconfigFile] = []
    for path in dict.fromkeys(each.absolute() for each in paths):
        try:
            with path.open("rb") as stream:
                content = yaml.safe_load(stream)
        except FileNotFoundError:
            continue
        except _FAILURES as error:
            raise ConfigError(f"{path} cannot be used as a kubeconfig: {_reason(error)}") from None
        if content is None:
            continue
        if not isinstance(content, dict):
            raise ConfigError(f"{path} cannot be used as a kubeconfig: it is not a mapping")
        found.append(KubeconfigFile(path, cast("dict[str, Any]", content)))
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    mark = getattr(error, "problem_mark", None)
    return f"invalid YAML ({type(error).__name__}{f' in line {mark.line + 1}, column {mark.column + 1}' if mark else ''})"


def _replace(target: Path, content: bytes) -> None:
    """Write a file next to `target`, with its mode and, if we may, its owner, and rename it."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        old = target.stat()
        with suppress(PermissionError):
            os.chown(new, old.st_uid, old.st_gid)
        shutil.copymode(target, new)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
