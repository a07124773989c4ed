"""The folder that keeps what is worth keeping between two runs, and the lock that lets one run at a time use it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from embedded import locks
from imaging.console import Console
from imaging.errors import ImagesError


def cache_folder() -> Path:
    """Return $MPIOP_CACHE/images, else ${XDG_CACHE_HOME:-~/.cache}/mpiop/images, made if it is missing."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    default = (Path(home) if Path(home).is_absolute() else Path("~/.cache").expanduser()) / "mpiop"
    folder = Path(os.environ.get("MPIOP_CACHE") or default).absolute() / "images"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImagesError(
            f"the cache {folder} cannot be made ({error.strerror}); set MPIOP_CACHE to a folder that can be written"
        ) from error
    return folder


def locked(folder: Path, console: Console) -> AbstractContextManager[int]:
    """Hold the lock of `folder`, waiting for its holder; yield its file descriptor."""
    return locks.locked(folder / "lock", lambda: console.say("another hack/images is at work; waiting for it"))


@contextmanager
def unfinished(folder: Path) -> Iterator[bool]:
    """Mark a piece of work; yield whether the one before never came to its end."""
    mark = folder / "unfinished"
    was_there = mark.exists()
    mark.touch()
    yield was_there
    mark.unlink()


def empty(folder: Path) -> None:
    """Remove all in `folder` but the lock; what a killed build left mounted there is unmounted first, or it would be emptied too.

    Raises:
        ImagesError: Something could not be unmounted or removed.
    """
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    inside = [mount for mount in mounts if Path(mount).is_relative_to(folder)]
    for mount in sorted(inside, reverse=True):
        if subprocess.run(["umount", mount], check=False).returncode != 0:
            raise ImagesError(f"{mount} is still in use; end the program that uses it (fuser -vm {mount}) and try again")
    try:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
    except OSError as error:
        raise ImagesError(f"{error.filename} cannot be removed: {error.strerror}") from error
