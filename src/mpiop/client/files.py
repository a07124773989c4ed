"""Files that travel with a job, in a ConfigMap: mounted before `mpirun` starts, so nothing has to wait for them."""

import base64
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from mpiop.client.errors import InvalidError
from mpiop.client.manifest import generated_name

MAX_BYTES: Final = 1000 * 1024
"""A ConfigMap holds 1 MiB, its names included."""
MOST_ENTRIES: Final = 10_000
"""The job lists the files twice, and has at most 1.5 MB. The limit also ends the search of a folder named by mistake, such as a home."""
MOST_BYTES: Final = 100 * MAX_BYTES
"""What is read at most; an allocation takes as much."""
_LEFT_OUT: Final = frozenset({".git", "__pycache__", ".venv", "node_modules"})
_NO_LINK: Final = os.O_RDONLY | os.O_NOFOLLOW


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

    `path` itself may be a link to anywhere. Links in the folder are read if they point into it, and not into what is left out: another link
    may have come with the folder, from a repository or an archive, and everyone who may read ConfigMaps could read what it points to.

    Raises:
        InvalidError: There is no such folder, it is too large, a link leads out of it, or a file cannot be read.
    """
    return Files(read_contents(path, MAX_BYTES))


def read_contents(path: Path, possible: int = MOST_BYTES) -> Mapping[str, bytes]:
    """Return the same by their paths, which may be larger than a job takes; `possible` is how many bytes the error names.

    Raises:
        InvalidError: As for `read_files`.
    """
    try:
        if path.is_file():
            return _checked(path, {path.name: path}, Path.read_bytes, possible)
        root = Path(os.path.realpath(path))
        return _checked(path, dict(_files_of(path, root)), partial(_content, root), possible)
    except OSError as error:
        raise InvalidError(f"{error.filename} cannot be read: {error.strerror}") from error


def _checked(path: Path, found: Mapping[str, Path], read: Callable[[Path], bytes], possible: int) -> Mapping[str, bytes]:
    """Return the files that were `found` in `path`; what is far too large is not read at all."""
    if sum(each.stat().st_size for each in found.values()) > MOST_BYTES:
        raise InvalidError(f"{path} is far too large to upload: {possible:,} bytes are possible")
    return {name: read(each) for name, each in found.items()}


def _content(root: Path, file: Path) -> bytes:
    """Return the content of a file below `root`; a link that was put there since it was found is an error."""
    with ExitStack() as opened:
        folder: int | None = None
        for part in (str(root), *file.relative_to(root).parts[:-1]):
            folder = os.open(part, _NO_LINK | os.O_DIRECTORY, dir_fd=folder)
            opened.callback(os.close, folder)
        with os.fdopen(os.open(file.name, _NO_LINK | os.O_NONBLOCK, dir_fd=folder), "rb") as stream:
            return stream.read()


def _files_of(path: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the regular files of a folder, by their names in it; broken links, pipes and devices are left out."""
    if not path.is_dir():
        raise InvalidError(f"{path} is neither a file nor a folder" if path.exists() else f"{path} does not exist")
    seen = 0
    waiting = [(Path(), root, frozenset({root}))]
    while waiting:
        name, folder, above = waiting.pop()
        for each in folder.iterdir():
            seen += 1
            if seen > MOST_ENTRIES:
                raise InvalidError(f"{path} has more than {MOST_ENTRIES:,} files and folders: too many to travel with a job")
            inside, target = name / each.name, Path(os.path.realpath(each))
            if _left_out(Path(each.name)) or not (target.is_file() or target.is_dir()):
                continue
            if not target.is_relative_to(root):
                raise InvalidError(f"{path / inside} is a link to {target}, outside of {path}: copy it into the folder, or remove the link")
            if hidden := _left_out(target.relative_to(root)):
                raise InvalidError(
                    f"{path / inside} is a link to {target}, and {hidden} is left out: copy what it points to, or remove the link"
                )
            if target in above:
                raise InvalidError(f"{path / inside} is a link to {target}, which it is in itself: remove the link")
            if target.is_dir():
                waiting.append((inside, target, above | {target}))
            else:
                yield str(inside), target


def _left_out(path: Path) -> str:
    """Return the part of `path` that is left out, or ""; macOS opens `.git` as `.GIT` too."""
    return next((part for part in path.parts if part.casefold() in _LEFT_OUT), "")
