"""The files of a release that are made of files of the checkout."""

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from releasing.errors import ReleaseError

SUMS: Final = "SHA256SUMS"
_VALUES: Final = (
    "\n  repository: mpiop.invalid/mpi-operator\n",
    '\n  digest: ""\n',
    '\n    repository: ""\n',
    '\n    digest: ""\n',
)
_FIRST_ARGUMENT: Final = "        - --lock-namespace=$(POD_NAMESPACE)\n"


class Images(NamedTuple):
    """The images of a release, each `REPOSITORY@DIGEST`."""

    operator: str
    agent: str


def check_version(root: Path, version: str) -> None:
    """Return if the checkout is that of `version`.

    Raises:
        ReleaseError: A file names another version; the message lists them.
    """
    wanted = {
        "src/mpiop/__init__.py": f'__version__ = "{version}"',
        "charts/mpiop/Chart.yaml": f"\nversion: {version}\nappVersion: {version}\n",
        "deploy/v2beta1/mpi-operator.yaml": f"image: mpiop.invalid/mpi-operator:v{version}",
        "CHANGELOG.md": f"\n## {version} - ",
    }
    wrong = [f"{name} lacks {text.strip()!r}" for name, text in wanted.items() if text not in (root / name).read_text("utf-8")]
    if wrong:
        raise ReleaseError(f"the checkout is not that of {version}: " + "; ".join(wrong))


def notes(changelog: str, version: str) -> str:
    """Return the changelog's section of a version."""
    section = re.search(rf"^## {re.escape(version)} - [^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return f"# mpiop {version}\n\n{section[1].strip() if section else ''}\n"


def manifest(text: str, version: str, images: Images) -> str:
    """Return the YAML that installs the operator with `images` in place of those of `version`.

    Raises:
        ReleaseError: The YAML does not look as it did.
    """
    made = {
        f"mpiop.invalid/mpi-operator:v{version}": images.operator,
        _FIRST_ARGUMENT: f"{_FIRST_ARGUMENT}        - --agent-image={images.agent}\n",
    }
    return _replaced(text, made, "deploy/v2beta1/mpi-operator.yaml")


def values(text: str, images: Images) -> str:
    """Return the chart's values with `images` as the default.

    Raises:
        ReleaseError: The values do not look as they did.
    """
    made = [
        f"\n{indent}{name}: {part}\n"
        for indent, image in (("  ", images.operator), ("    ", images.agent))
        for name, part in zip(("repository", "digest"), image.split("@"), strict=True)
    ]
    return _replaced(text, dict(zip(_VALUES, made, strict=True)), "charts/mpiop/values.yaml")


def _replaced(text: str, made: Mapping[str, str], file: str) -> str:
    for old, new in made.items():
        if text.count(old) != 1:
            raise ReleaseError(f"{file}: {old.strip()!r} is not there once")
        text = text.replace(old, new)
    return text


def chart(folder: Path, images: Images | None, seconds: int) -> bytes:
    """Return the chart in `folder` as `helm package` makes it.

    Args:
        folder: The chart's.
        images: The default of its values; None leaves them as they are.
        seconds: Modification time of all files.
    """
    file = folder / "values.yaml"
    return pack(folder, seconds, {} if images is None else {file: values(file.read_text("utf-8"), images).encode()})


def pack(folder: Path, seconds: int, changed: Mapping[Path, bytes] = MappingProxyType({})) -> bytes:
    """Return a folder as .tar.gz; the same files give the same bytes. Links become files, because krew refuses links.

    Args:
        folder: Its name is the first part of all paths.
        seconds: Modification time of all files.
        changed: Other contents of some files.
    """
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=seconds) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = changed.get(file) or file.read_bytes()
            member = tarfile.TarInfo(str(Path(folder.name) / file.relative_to(folder)))
            member.size, member.mtime, member.mode = len(content), seconds, 0o755 if os.access(file, os.X_OK) else 0o644
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def checksums(files: Iterable[Path]) -> str:
    """Return the lines that `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files))
