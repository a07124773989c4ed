"""The table of images, and that Dockerfiles, manifests and table agree."""

import re
from pathlib import Path

import pytest

from demonstration.operator_images import USUAL
from imaging.catalogue import CATALOGUE, ROOT, Image, release_version, select, with_registry
from imaging.errors import ImagesError
from imaging.fingerprint import input_files


@pytest.mark.parametrize(
    ("repository", "full"),
    [
        ("team/mpi-pi", "docker.io/team/mpi-pi"),
        ("alpine", "docker.io/library/alpine"),
        ("registry.example.com/mpi-operator", "registry.example.com/mpi-operator"),
        ("registry:5000/mpi-operator", "registry:5000/mpi-operator"),
        ("localhost/mpi-operator", "localhost/mpi-operator"),
    ],
)
def test_a_name_without_registry_gets_the_one_that_kubernetes_would_ask(repository: str, full: str) -> None:
    assert with_registry(repository) == full


def test_only_what_is_asked_for_is_selected() -> None:
    assert select([]) == tuple(image for image in CATALOGUE if not image.is_slow)
    assert [image.name for image in select(["pi"])] == ["pi"]
    assert [image.name for image in select(["horovod"])] == ["horovod"]


def test_the_version_is_read_from_the_source(tmp_path: Path) -> None:
    source = tmp_path / "src/mpiop/__init__.py"
    source.parent.mkdir(parents=True)
    source.write_text('"""x"""\n__version__ = "1.2.3"\n', "utf-8")
    assert release_version(tmp_path) == "v1.2.3"
    source.write_text("", "utf-8")
    with pytest.raises(ImagesError, match="--release-version"):
        release_version(tmp_path)


@pytest.mark.parametrize("image", [image for image in CATALOGUE if not image.is_go], ids=lambda image: image.name)
def test_what_the_dockerfile_copies_is_let_in(image: Image) -> None:
    context = ROOT / image.context
    files = {file.relative_to(context) for file in input_files(context)}
    for line in re.findall(r"^COPY (?!--from)(.+)$", (context / "Dockerfile").read_text("utf-8"), re.MULTILINE):
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            assert any(file.is_relative_to(source) for file in files), source


def test_the_manifests_name_the_images_that_are_built() -> None:
    built = {image.reference(release_version()) for image in CATALOGUE}
    manifests = [ROOT / "deploy/v2beta1/mpi-operator.yaml", *(ROOT / "examples/v2beta1/pi").glob("*.yaml")]
    texts = [file.read_text("utf-8") for file in manifests]
    named = {with_registry(name) for text in texts for name in re.findall(r"^ +(?:- )?image: (\S+)$", text, re.MULTILINE)}
    assert named <= built
    assert {image.reference(release_version()) for image in CATALOGUE if image.name in USUAL} <= named
