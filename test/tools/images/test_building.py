"""An image is built when what goes in has changed, and only then."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.image_engine import FakeEngine
from imaging.archive import archived_image
from imaging.building import INPUTS_LABEL, VERSION_LABEL, Building
from imaging.catalogue import Image

IMAGE = Image("a", "x.io/a", "a")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.dockerignore").write_text("*\n!main.c\n", "utf-8")
    (tmp_path / "a/Dockerfile").write_text("FROM x\n", "utf-8")
    (tmp_path / "a/main.c").touch()
    return tmp_path


@pytest.fixture
def building(root: Path) -> Building:
    return Building(FakeEngine(images={"base": {}}), "base", "v1", {}, root=root)


def engine_of(building: Building) -> FakeEngine:
    assert isinstance(building.engine, FakeEngine)
    return building.engine


def test_the_first_build_says_base_version_and_inputs(building: Building, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://user:word@proxy")
    assert building.build(IMAGE).startswith("built in")
    [build] = engine_of(building).builds
    assert (build.reference, build.context, build.arguments["BASE_IMAGE"]) == ("x.io/a:v1", root / "a", "base")
    assert build.arguments["http_proxy"] == "http://user:word@proxy"
    assert build.labels[VERSION_LABEL] == "v1"
    assert len(build.labels[INPUTS_LABEL]) == 32


@pytest.mark.parametrize(
    ("change", "builds"),
    [
        pytest.param(lambda *_: None, 1, id="nothing"),
        pytest.param(lambda building, _: (building.root / "a/main.c").write_text("int main;"), 2, id="a file"),
        pytest.param(lambda building, _: building.engine.images.update(base={"updated": "yes"}), 2, id="the image called like the base"),
        pytest.param(lambda _, patch: patch.setenv("http_proxy", "http://other"), 1, id="a proxy, which the image does not have"),
    ],
)
def test_it_is_built_again_after_a_change_of(
    building: Building, change: Callable[[Building, pytest.MonkeyPatch], object], builds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.build(IMAGE)
    change(building, monkeypatch)
    assert (building.build(IMAGE) == "nothing changed") is (builds == 1)
    assert len(engine_of(building).builds) == builds


def test_fresh_means_built_in_any_case(building: Building) -> None:
    building.build(IMAGE)
    replace(building, uses_cache=False).build(IMAGE)
    assert [build.uses_cache for build in engine_of(building).builds] == [True, False]


def test_labels_are_of_this_build_if_the_builder_reuses_an_image(building: Building) -> None:
    engine_of(building).reuses_images = True
    tagged = replace(IMAGE, tag="x")
    building.build(tagged)
    replace(building, version="v2").build(tagged)
    assert building.engine.label("x.io/a:x", VERSION_LABEL) == "v2"
    assert replace(building, version="v2").build(tagged) == "nothing changed"


def test_several_platforms_are_left_to_the_builder(building: Building) -> None:
    several = replace(building, platforms=("linux/amd64", "linux/arm64"))
    several.build(IMAGE)
    several.build(IMAGE)
    assert [build.is_index for build in engine_of(building).builds] == [True, True]


def test_an_archive_is_written_once_for_each_image(building: Building, root: Path) -> None:
    building.build(IMAGE)
    file = building.save(IMAGE, root / "out")
    assert file == root / "out/a.tar"
    assert archived_image(file) == (engine_of(building).image_id("x.io/a:v1"), "x.io/a:v1")
    building.save(IMAGE, root / "out")
    assert len(engine_of(building).saves) == 1
    (root / "a/main.c").write_text("int main;", "utf-8")
    building.build(IMAGE)
    building.save(IMAGE, root / "out")
    assert len(engine_of(building).saves) == 2
    assert [path.name for path in (root / "out").iterdir()] == ["a.tar"]


@pytest.mark.parametrize("content", [b"", b"no tar"])
def test_a_broken_archive_is_no_archive(tmp_path: Path, content: bytes) -> None:
    assert archived_image(tmp_path / "gone.tar") == ("", "")
    (tmp_path / "broken.tar").write_bytes(content)
    assert archived_image(tmp_path / "broken.tar") == ("", "")
