"""Files that travel with a job, in a ConfigMap: mounted before `mpirun` starts, so nothing has to wait for them."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mpiop.client.errors import InvalidError
from mpiop.client.spec import generated_name

MAX_BYTES: Final = 1000 * 1024
"""A ConfigMap holds 1 MiB, its names included."""
_LEFT_OUT: Final = frozenset({".git", "__pycache__", ".venv", "node_modules"})


@dataclass(frozen=True, slots=True)
class Files:
    """Files by their path below `/upload`."""

    content: Mapping[str, bytes]

    def __post_init__(self) -> None:
        """Refuse what a ConfigMap cannot hold.

        Raises:
            InvalidError: Together they are too large, or there are none.
        """
        if not self.content:
            raise InvalidError("there are no files to upload")
        size = sum(map(len, self.content.values()))
        if size > MAX_BYTES:
            largest = max(self.content, key=lambda path: len(self.content[path]))
            raise InvalidError(
                f"the files to upload have {size:,} bytes, and {MAX_BYTES:,} may travel with a job; the largest is {largest} "
                f"({len(self.content[largest]):,} bytes). Put large files on a volume (--mount) or into the image"
            )

    @property
    def names(self) -> Mapping[str, str]:
        """Return the path of each file by its key in the ConfigMap."""
        return {f"file-{number}": path for number, path in enumerate(sorted(self.content))}

    def config_map(self, command: Sequence[str]) -> dict[str, Any]:
        """Return the ConfigMap for a job that runs `command`."""
        data = {key: base64.b64encode(self.content[path]).decode() for key, path in self.names.items()}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"generateName": f"{generated_name(command)}-files-", "labels": {"app.kubernetes.io/managed-by": "kubectl-mpi"}},
            "binaryData": data,
            "immutable": True,
        }


def read_files(path: Path) -> Files:
    """Return a file, or all files of a folder, without `.git` and the like.

    Raises:
        InvalidError: There is no such folder, it is too large, or a file cannot be read.
    """
    if not path.exists():
        raise InvalidError(f"{path} does not exist")
    if path.is_file():
        found = {path.name: path}
    else:
        inside = (each for each in sorted(path.rglob("*")) if each.is_file() and not _LEFT_OUT & set(each.relative_to(path).parts))
        found = {str(each.relative_to(path)): each for each in inside}
    if sum(each.stat().st_size for each in found.values()) > 100 * MAX_BYTES:
        raise InvalidError(f"{path} is far too large to travel with a job: {MAX_BYTES:,} bytes are possible")
    try:
        return Files({name: each.read_bytes() for name, each in found.items()})
    except OSError as error:
        raise InvalidError(f"{error.filename} cannot be read: {error.strerror}") from error
