"""The fingerprint changes with everything that goes into an image, and with nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from imaging.catalogue import Image
from imaging.errors import ImagesError
from imaging.fingerprint import fingerprint, input_files

IMAGE = Image("a", "x.io/a", ".")


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / ".dockerignore").write_text("# why\n*\n!src\n!setup.cfg\n**/__pycache__\n**/*.o\n", "utf-8")
    (tmp_path / "src/__pycache__").mkdir(parents=True)
    for name in ("Dockerfile", "setup.cfg", "README.md", "src/a.py", "src/a.o", "src/__pycache__/a.pyc"):
        (tmp_path / name).write_text(name, "utf-8")
    return tmp_path


def test_the_files_are_those_that_dockerignore_lets_in(context: Path) -> None:
    files = [str(file.relative_to(context)) for file in input_files(context)]
    assert files == [".dockerignore", "Dockerfile", "setup.cfg", "src/a.py"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "src/a.py").write_text("new"), id="a file"),
        pytest.param(lambda folder: (folder / "src/b.py").touch(), id="one more file"),
        pytest.param(lambda folder: (folder / "src/a.py").rename(folder / "src/c.py"), id="a file's name"),
        pytest.param(lambda folder: (folder / "src/a.py").chmod(0o755), id="a file's mode"),
        pytest.param(lambda folder: (folder / "Dockerfile").write_text("FROM x"), id="the Dockerfile"),
    ],
)
def test_it_changes_with(context: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint(IMAGE, context, {"base": "x"})
    change(context)
    assert fingerprint(IMAGE, context, {"base": "x"}) != before


def test_it_changes_with_stage_and_inputs(context: Path) -> None:
    target = Image("a", "x.io/a", ".", target="mpich")
    seen = {
        fingerprint(IMAGE, context, {"base": "x"}),
        fingerprint(IMAGE, context, {"base": "y"}),
        fingerprint(target, context, {"base": "x"}),
    }
    assert len(seen) == 3


def test_it_does_not_change_with_what_is_left_out(context: Path) -> None:
    before = fingerprint(IMAGE, context, {})
    for name in ("README.md", "src/a.o", "src/__pycache__/a.pyc"):
        (context / name).write_text("new", "utf-8")
    assert fingerprint(IMAGE, context, {}) == before


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("src\n", "the first rule must be"),
        ("", "the first rule must be"),
        ("*\nsrc\n", "`src` is neither"),
        ("*\n!gone\n", "gone is missing"),
    ],
)
def test_a_dockerignore_of_another_form_is_refused(context: Path, rules: str, message: str) -> None:
    (context / ".dockerignore").write_text(rules, "utf-8")
    with pytest.raises(ImagesError, match=message):
        input_files(context)
