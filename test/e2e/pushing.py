"""`docker`, `skopeo` and `ctr` as the documents use them, where the registry is the node of an embedded cluster: a push loads the image.

Each is a script in a folder for PATH, which runs this module with its own name. Other arguments than those of the documents are an error.
"""

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.clusters import ROOT, load_archives
from e2e.stand_ins import PI_IMAGE, image_with

_CLUSTER, _FOLDER = "PUSHING_CLUSTER", "PUSHING_FOLDER"


def with_pushing(environment: Mapping[str, str], folder: Path, cluster: str) -> dict[str, str]:
    """Return `environment` with the programs in its PATH; they keep images in `folder`, and push them to the embedded cluster `cluster`."""
    folder.mkdir()
    for program in ("docker", "skopeo", "ctr"):
        path = folder / program
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m e2e.pushing {program} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    places = os.pathsep.join(str(ROOT / name) for name in ("test", "hack", "src"))
    own = {_CLUSTER: cluster, _FOLDER: str(folder), "PYTHONPATH": places, "PATH": f"{folder}{os.pathsep}{environment['PATH']}"}
    return {**environment, **own}


def run(program: str, arguments: Sequence[str]) -> None:
    """Do what a command line of the documents asks for."""
    match (program, *arguments):
        case ["docker", "build", "--tag", name, context]:
            _build(name, Path(context))
        case ["docker", "push", name]:
            _load(_archive_of(name))
        case ["skopeo", "copy", source, destination]:
            name = destination.removeprefix("docker://")
            _load(image_with({}, name, _archive_of(name), base=Path(source.removeprefix("docker-archive:"))))
        case ["ctr", "--namespace", "k8s.io", "images", "import", archive]:
            _load(Path(archive))
        case _:
            raise SystemExit(f"the documents do not show: {program} {' '.join(arguments)}")


def _build(name: str, context: Path) -> None:
    """Build an image of a Dockerfile: its COPY lines, and an image with Open MPI for its FROM and RUN."""
    copied: dict[str, tuple[bytes, int]] = {}
    for line in (context / "Dockerfile").read_text(encoding="utf-8").splitlines():
        match line.split():
            case ["COPY", source, target]:
                copied[f"{target}{source}"] = ((context / source).read_bytes(), 0o755)
            case _:
                assert line.startswith(("FROM ", "RUN ")), line
    image_with(copied, name, _archive_of(name), base=PI_IMAGE)


def _archive_of(name: str) -> Path:
    return Path(os.environ[_FOLDER]) / f"{hashlib.sha256(name.encode()).hexdigest()}.tar"


def _load(archive: Path) -> None:
    load_archives(os.environ[_CLUSTER], archive.resolve())


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
