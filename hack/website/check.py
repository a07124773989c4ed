"""Read the built site as a browser would: each link of each page leads to a file, and to a place that is on that page."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The places and the links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.places.add(value)
            if value and name in {"href", "src"}:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Return a sentence for each link below `site` that leads nowhere; links to other hosts are not followed."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        for link in sorted(set(page.links)):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = _target(site, path, unquote(parts.path))
            name = path.relative_to(site)
            if not target.is_file():
                found.append(f"{name}: {link} leads to no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name}: {link} leads to no place on that page")
    return found


def _target(site: Path, page: Path, path: str) -> Path:
    if not path:
        return page
    target = (site / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    return target / "index.html" if target.is_dir() else target
