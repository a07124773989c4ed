"""What a release is made of, without its image."""

import io
import tarfile
from pathlib import Path

import pytest
import yaml

import mpiop
from imaging.catalogue import ROOT
from releasing import files
from releasing.command import main
from releasing.errors import ReleaseError

IMAGES = files.Images(
    *(f"registry.example.com/team/mpi-operator{suffix}@sha256:{digit * 64}" for suffix, digit in (("", "0"), ("-agent", "1")))
)
CHANGELOG = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0\n\n- first\n\n## 0.0.9\n\n- before\n"


def test_a_checkout_of_another_version_is_refused_with_what_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["9.9.9", f"--output={tmp_path}"]) == 1
    said = capsys.readouterr().err
    assert """src/mpiop/__init__.py lacks '__version__ = "9.9.9"'""" in said
    assert "CHANGELOG.md lacks '## 9.9.9'" in said


def test_all_files_of_the_checkout_but_the_changelog_name_the_version() -> None:
    with pytest.raises(ReleaseError) as caught:
        files.check_version(ROOT, mpiop.__version__)
    assert str(caught.value).count("lacks") == 1
    assert "CHANGELOG.md" in str(caught.value)


def test_the_notes_are_the_section_of_the_changelog() -> None:
    assert files.notes(CHANGELOG, "0.1.0") == "# mpiop 0.1.0\n\n- first\n"
    assert files.notes(CHANGELOG, "0.0.9") == "# mpiop 0.0.9\n\n- before\n"


def test_the_manifest_names_the_images_by_their_digests() -> None:
    text = (ROOT / "deploy/v2beta1/mpi-operator.yaml").read_text("utf-8")
    made = files.manifest(text, mpiop.__version__, IMAGES)
    [deployment] = [each for each in yaml.safe_load_all(made) if each["kind"] == "Deployment"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == IMAGES.operator
    assert f"--agent-image={IMAGES.agent}" in container["args"]


def test_the_chart_is_the_same_each_time_and_names_the_images_by_their_digests() -> None:
    made = files.chart(ROOT / "charts/mpiop", IMAGES, 1_800_000_000)
    assert made == files.chart(ROOT / "charts/mpiop", IMAGES, 1_800_000_000)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        assert "mpiop/Chart.yaml" in archive.getnames()
        stream = archive.extractfile("mpiop/values.yaml")
        assert stream is not None
        values = yaml.safe_load(stream.read())
    assert f"{values['image']['repository']}@{values['image']['digest']}" == IMAGES.operator
    assert values["flags"] == {"agent-image": IMAGES.agent}


def test_without_images_the_chart_stays_as_it_is() -> None:
    made = files.chart(ROOT / "charts/mpiop", None, 0)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        stream = archive.extractfile("mpiop/values.yaml")
        assert stream is not None
        assert stream.read() == (ROOT / "charts/mpiop/values.yaml").read_bytes()


def test_values_that_look_otherwise_are_not_guessed_at() -> None:
    with pytest.raises(ReleaseError, match="is not there once"):
        files.values("image: {}\n", IMAGES)


def test_checksums_have_the_form_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"a")
    lines = files.checksums(tmp_path.iterdir()).splitlines()
    assert [line.split("  ")[1] for line in lines] == ["a", "b"]
    assert lines[1].startswith("e3b0c44298fc1c14")
