"""Brings the uploaded folder of an allocation up to date: the launcher lists what it has, and gets what differs."""

import contextlib
import hashlib
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from mpiop.client.allocation import script_command
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.files import read_contents

_FOLDER: Final = "upload"
_LIST: Final = "sent"
"""File in the launcher with a line for each file, as `sha256sum` prints it."""
_END: Final = b"end\n"
_DONE: Final = b"done\n"
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f\\]+")


def upload(kubectl: Sequence[str], path: Path) -> None:
    """Bring the folder of the launcher up to date with a folder here; `kubectl` is as for `Step`.

    Raises:
        InvalidError: The folder cannot be read, is too large, or a link leads out of it.
        ClientError: The files did not arrive.
    """
    contents = {f"{_FOLDER}/{name}": content for name, content in read_contents(path).items()}
    if wrong := next((name for name in contents if not _NAME.fullmatch(name)), None):
        raise InvalidError(f"{wrong!r} cannot be uploaded: its name has a backslash or a control character")
    rows = {f"{hashlib.sha256(content).hexdigest()}  {name}": name for name, content in contents.items()}
    command = [*kubectl, "--", *script_command("receive")]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)  # noqa: S603 - kubectl
        output = b""
        if process.stdin is not None and process.stdout is not None:
            with process.stdout as stdout, contextlib.suppress(BrokenPipeError), process.stdin as stdin:
                if (known := _known(stdout)) is not None and known != rows.keys():
                    stale = [row.partition("  ")[2] for row in known - rows.keys()]
                    _send(stdin, stale, {name: contents[name] for row, name in rows.items() if row not in known}, rows)
                stdin.close()
                output = stdout.read()
        if process.wait() or not output.endswith(_DONE):
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise ClientError(f"{path} was not uploaded (kubectl: exit code {process.returncode}): {last}")


def _known(stream: IO[bytes]) -> set[str] | None:
    """Return the rows of what the launcher has; None if it ends before."""
    rows = set[str]()
    for line in stream:
        if line == _END:
            return rows
        rows.add(line.decode(errors="surrogateescape").removesuffix("\n"))
    return None


def _send(stream: IO[bytes], stale: Sequence[str], changed: Mapping[str, bytes], rows: Mapping[str, str]) -> None:
    """Send paths to remove, an empty line, and an archive that ends with the new list."""
    stream.write("".join(f"{name}\n" for name in [*stale, ""]).encode(errors="surrogateescape"))
    listing = "".join(f"{row}\n" for row in sorted(rows)).encode(errors="surrogateescape")
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name, content in [*changed.items(), (_LIST, listing)]:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
