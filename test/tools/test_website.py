"""The site of documents: what is laid out for it, its navigation, and the check of its links."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from website.check import broken_links
from website.staging import ROOT, pages, stage


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name, text in {
        "README.md": "[a page](docs/a.md#top) [a test](test/test_a.py) `[no](link)` [far](https://example.com/x)",
        "docs/a.md": "# Top\n\n[back](../README.md) [here](#top)\n\n```\n[no](link)\n```\n",
        "docs/site.css": "",
        "test/test_a.py": "",
        "test/test_b.py": "",
    }.items():
        write(root / name, text)
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_pages_and_what_they_link_to_are_laid_out_as_in_the_repository(repository: Path, tmp_path: Path) -> None:
    staged = tmp_path / "pages"
    write(staged / "docs" / "gone.md", "of an earlier run")
    assert stage(staged, repository) == 4
    assert files_below(staged) == {"README.md", "docs/a.md", "docs/site.css", "test/test_a.py"}


def test_only_what_has_changed_is_written_again(repository: Path, tmp_path: Path) -> None:
    staged = tmp_path / "pages"
    stage(staged, repository)
    before = {name: (staged / name).stat().st_mtime_ns for name in files_below(staged)}
    write(repository / "docs" / "a.md", "# Another\n")
    stage(staged, repository)
    assert [name for name in sorted(before) if (staged / name).stat().st_mtime_ns != before[name]] == ["docs/a.md"]


@pytest.mark.parametrize("target", ["nowhere.md", "docs"])
def test_a_link_that_leads_to_no_file_ends_it(target: str, repository: Path, tmp_path: Path) -> None:
    write(repository / "README.md", f"[x]({target})")
    with pytest.raises(FileNotFoundError, match=rf"README\.md: {target} is no file"):
        stage(tmp_path / "pages", repository)


LINKS = {
    "to a page": ("a/", ""),
    "to a place of a page": ("a/#there", ""),
    "to a place of its own": ("#here", ""),
    "to a file": ("../site/x.py", ""),
    "from the root": ("/a/#there", ""),
    "to another host": ("https://example.com/nowhere", ""),
    "to no page": ("b/", "leads to no file"),
    "to no place of a page": ("a/#here", "leads to no place"),
    "to no place of its own": ("#there", "leads to no place"),
}


@pytest.mark.parametrize(("link", "complaint"), LINKS.values(), ids=LINKS)
def test_links_of_the_built_site_are_followed(link: str, complaint: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site / "index.html", f'<h1 id="here">x</h1><a href="{link}">y</a>')
    write(site / "a" / "index.html", '<a name="there"></a>')
    write(site / "x.py", "")
    found = broken_links(site)
    assert [line.startswith(f"index.html: {link} ") and complaint in line for line in found] == ([True] if complaint else [])


def test_each_page_stands_once_in_the_navigation() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = list(entries(settings["nav"]))
    assert sorted(named) == [str(path) for path in pages()]


def entries(node: object) -> list[str]:
    """Return the paths below a part of the navigation."""
    if isinstance(node, str):
        return [node]
    parts = node if isinstance(node, list) else list(node.values()) if isinstance(node, dict) else []
    return [name for part in parts for name in entries(part)]


@pytest.mark.parametrize(("target", "environments"), [("docs", ["documents"]), ("docs-look", ["documents", "look"])])
def test_the_site_needs_no_environment_but_its_own(target: str, environments: list[str], tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    done = subprocess.run(["make", "--dry-run", target], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("hack/setup ")] == environments
