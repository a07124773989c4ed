"""Every file names the project's images as `make images` builds them, and Kubeflow's only where Kubeflow's are meant."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from imaging.catalogue import CATALOGUE, REGISTRY, ROOT, release_version

OF_KUBEFLOW = {
    "CHANGELOG.md": "what has changed",
    "docs/adr/0043-image-names.md": "why",
    "examples/v2beta1/tensorflow-benchmarks.yaml": "Kubeflow's documents apply this file, with Kubeflow's image",
    "examples/v2beta1/tensorflow-benchmarks/tensorflow-benchmarks.yaml": "the same",
    "test/e2e/test_documents.py": "runs these two",
    "test/e2e/test_kubeflow.py": "runs Kubeflow's operator",
    "test/e2e/test_migration.py": "a cluster with Kubeflow's operator",
    "test/tools/images/test_names.py": "this file",
}
"""Files that may name images of Kubeflow's organization on Docker Hub, and why."""
STAND_INS = {f"{REGISTRY}/{name}" for name in ("probe", "dra-example-driver", "tensorflow-benchmarks")}
"""Images that a test makes and loads."""
NAME = re.compile(rf"{re.escape(REGISTRY)}/[a-z0-9-]+(?::[\w.-]+)?")
VERSION = re.compile(r"v\{(?:__)?version(?:__)?\}")
"""In an f-string."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every file of the project, as far as it is text."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        path = Path(ROOT, name)
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            yield name, content.decode()


def test_images_of_kubeflow_are_named_only_where_they_are_meant() -> None:
    assert {name for name, text in texts() if "mpioperator/" in text} <= OF_KUBEFLOW.keys()


def test_every_name_in_the_projects_registry_is_one_of_the_catalogue() -> None:
    built = {image.reference(release_version()) for image in CATALOGUE}
    known = built | {image.rpartition(":")[0] for image in built} | {f"{image.rpartition(':')[0]}:dev" for image in built}
    found = {(match[0].rstrip("."), file) for file, text in texts() for match in NAME.finditer(VERSION.sub(release_version(), text))}
    assert {(image, file) for image, file in found if image not in known and image.partition(":")[0] not in STAND_INS} == set()
    assert {image for image, _ in found} >= {image.reference(release_version()) for image in CATALOGUE if not image.target}
