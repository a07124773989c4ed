"""Lay out the pages and the files that they link to as the repository has them, so that every relative link works on the site too.

The generator reads one directory, and the documents link to tests, examples and manifests all over the repository. The public address of
the repository is not known here, so the site carries the linked files itself.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("*.md", "docs/**/*.md", "charts/*/README.md", "examples/**/*.md")
STYLE = Path("docs/site.css")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the site, which are all documents for readers, relative to `root`."""
    return sorted({path.relative_to(root) for pattern in PAGES for path in root.glob(pattern)})


def links(text: str) -> Iterator[tuple[str, str]]:
    """Yield path and anchor, "" where there is none, of each link of a page to the repository."""
    for target in _LINK.findall(_CODE.sub("", text)):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield path, anchor


def linked_files(root: Path, sources: Iterable[Path]) -> set[Path]:
    """Return the files below `root` that pages link to and that are no pages.

    Raises:
        FileNotFoundError: A link leads nowhere, or to a directory, which the site has no page for.
    """
    found: set[Path] = set()
    for page in sources:
        for path, _ in links((root / page).read_text(encoding="utf-8")):
            target = (root / page.parent / path).resolve()
            if path and not target.is_file():
                raise FileNotFoundError(f"{page}: {path} is no file; correct the link")
            found.add(target.relative_to(root.resolve()) if path else page)
    return found - set(sources)


def stage(destination: Path, root: Path = ROOT) -> int:
    """Write pages and linked files below `destination`, remove what is no longer one, and return how many files there are.

    A file that has not changed is not written, so that a server which watches `destination` builds only what did.
    """
    sources = pages(root)
    wanted = {*sources, STYLE, *linked_files(root, sources)}
    for path in wanted:
        target, data = destination / path, (root / path).read_bytes()
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    for path in [each for each in destination.rglob("*") if each.is_file()]:
        if path.relative_to(destination) not in wanted:
            path.unlink()
    return len(wanted)
