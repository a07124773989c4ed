"""The files of a release that are made of files of the checkout."""

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from releasing.errors import ReleaseError

SUMS: Final = "SHA256SUMS"
_VALUES: Final = ("  repository: docker.io/mpioperator/mpi-operator\n", '  digest: ""\n')


def check_version(root: Path, version: str) -> None:
    """Return if the checkout is that of `version`.

    Raises:
        ReleaseError: A file names another version; the message lists them.
    """
    wanted = {
        "src/mpiop/__init__.py": f'__version__ = "{version}"',
        "charts/mpiop/Chart.yaml": f"\nversion: {version}\nappVersion: {version}\n",
        "deploy/v2beta1/mpi-operator.yaml": f"image: docker.io/mpioperator/mpi-operator:v{version}",
        "CHANGELOG.md": f"\n## {version}\n",
    }
    wrong = [f"{name} lacks {text.strip()!r}" for name, text in wanted.items() if text not in (root / name).read_text("utf-8")]
    if wrong:
        raise ReleaseError(f"the checkout is not that of {version}: " + "; ".join(wrong))


def notes(changelog: str, version: str) -> str:
    """Return what the changelog says of a version."""
    section = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return f"# mpiop {version}\n\n{section[1].strip() if section else ''}\n"


def manifest(text: str, version: str, image: str) -> str:
    """Return the YAML that installs the operator with `image` in place of the tag of `version`."""
    return text.replace(f"docker.io/mpioperator/mpi-operator:v{version}", image)


def values(text: str, image: str) -> str:
    """Return the chart's values with `image`, a name with a digest, as the default.

    Raises:
        ReleaseError: The values do not look as they did.
    """
    repository, _, digest = image.partition("@")
    made = (f"  repository: {repository}\n", f"  digest: {digest}\n")
    for old, new in zip(_VALUES, made, strict=True):
        if text.count(old) != 1:
            raise ReleaseError(f"charts/mpiop/values.yaml: {old.strip()!r} is not there once")
        text = text.replace(old, new)
    return text


def chart(folder: Path, image: str, seconds: int) -> bytes:
    """Return the chart in `folder` as `helm package` makes it; the same input gives the same bytes.

    Args:
        folder: The chart's.
        image: The operator's, a name with a digest; without one the values stay as they are.
        seconds: Modification time of all files.
    """
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=seconds) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = file.read_bytes()
            if file == folder / "values.yaml" and "@" in image:
                content = values(content.decode(), image).encode()
            member = tarfile.TarInfo(str(Path(folder.name) / file.relative_to(folder)))
            member.size, member.mtime, member.mode = len(content), seconds, 0o644
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def checksums(files: Iterable[Path]) -> str:
    """Return the lines that `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files))
