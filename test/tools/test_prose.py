"""The check of wording finds phrases in prose, where they are, and nothing in code."""

import subprocess
from pathlib import Path

import pytest

from wording.check import checks, found, run

RULES = checks({"anew": "again", "is no (?!longer)\\w+": "is not a", "goes on": "continues"})


def found_in(path: str, text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.phrase) for finding in found(path, text, RULES)]


MARKDOWN = [
    pytest.param("Fine.\n\nIt starts Anew.\n", [(3, "anew")], id="also with a capital"),
    pytest.param("it goes\n  on\n", [(1, "goes on")], id="over two lines"),
    pytest.param("a\n\n```sh\nanew\n```\nanew\n", [(6, "anew")], id="not in a block of code"),
    pytest.param('`anew` <!-- anew --> [x](anew.md) https://anew.org <a id="anew">', [], id="not in code, links and HTML"),
    pytest.param("it is no longer; it is no file", [(1, "is no file")], id="not what a rule leaves out"),
    pytest.param("it renews, anewly", [], id="whole words only"),
]


@pytest.mark.parametrize(("text", "findings"), MARKDOWN)
def test_markdown(text: str, findings: list[tuple[int, str]]) -> None:
    assert found_in("a.md", text) == findings


PYTHON = [
    pytest.param("x = 1  # anew\n", [(1, "anew")], id="comment"),
    pytest.param('def f():\n    # why\n    """Do it\n\n    anew.\n    """\n', [(5, "anew")], id="docstring after a comment"),
    pytest.param("# it goes\n# on\n", [(1, "goes on")], id="over two comments"),
    pytest.param('raise E(f"{x} goes "\n  "on it")\n', [(1, "goes on")], id="over two literals"),
    pytest.param("x = 1  # goes\ny = 2  # on\n", [], id="not over code"),
    pytest.param('anew = {"anew": 1}\n', [], id="not names and keys"),
    pytest.param('"""Return `anew`."""\n', [], id="not code in a docstring"),
    pytest.param('x = """ä\n"""; y = "ä is no b"\n', [(2, "is no b")], id="after letters of two bytes"),
]


@pytest.mark.parametrize(("text", "findings"), PYTHON)
def test_python(text: str, findings: list[tuple[int, str]]) -> None:
    assert found_in("src/a.py", text) == findings


def test_strings_are_messages_where_users_read_them() -> None:
    paths = ["src/mpiop/kubectl/a.py", "hack/generators/a.py", "hack/embedded/a.py", "test/a.py"]
    assert [path for path in paths if found_in(path, 'print("it is no file")\n')] == paths[:2]


def test_without_arguments_all_tracked_files_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hack").mkdir()
    (tmp_path / "hack" / "tool").write_text("#!/usr/bin/env python3\n# anew\n")
    (tmp_path / "hack" / "data.json").write_text('"anew"')
    (tmp_path / "README.md").write_text("plain\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    assert run(tmp_path, []) == 1
    assert capsys.readouterr().err == "hack/tool:2: 'anew': better again\n"
    (tmp_path / "hack" / "tool").write_text("#!/usr/bin/env python3\n# again\n")
    assert run(tmp_path, []) == 0
