"""Check the built site in Chromium as readers see it: narrow, middle and wide, light and dark, and search in it."""

import contextlib
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = (360, 768, 1280)
SCHEMES = ("light", "dark")
SEARCHED = {"NoSshd": "docs/reference/causes/", "ttlSecondsAfterFinished": "docs/jobs/"}
BAD_REQUEST = 400
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Relative luminance of text and ground, as WCAG defines it for their contrast.
CONTRAST = """() => {
  const numbers = colour => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = colour; c.fillRect(0, 0, 1, 1);
                              return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3) };
  const light = colour => numbers(colour).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                              .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(getComputedStyle(document.querySelector("article")).color),
                  light(getComputedStyle(document.body).backgroundColor)].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), light(getComputedStyle(document.body).backgroundColor)];
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass


@contextlib.contextmanager
def _served(site: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def look(site: Path) -> int:
    """Check every page, print what is wrong, and return the exit status; pictures of some pages are left in build/look."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.stderr.write("No Chromium on this machine. Debian and Ubuntu: apt-get install chromium\n")
        return 2
    pictures = site.parent / "look"
    shutil.rmtree(pictures, ignore_errors=True)
    with _served(site) as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        paths = sorted("" if path.parent == site else f"{path.parent.relative_to(site)}/" for path in site.rglob("index.html"))
        wrong = [line for scheme in SCHEMES for line in _looked(browser, root, paths, (scheme, pictures))]
        wrong += _searched(browser, root, pictures)
        browser.close()
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    print(
        f"{len(paths)} pages, {len(WIDTHS)} widths, light and dark, {len(SEARCHED)} searches: {len(wrong)} faults; pictures in build/look"
    )
    return 1 if wrong else 0


def _looked(browser: Browser, root: str, paths: list[str], seen: tuple[str, Path]) -> list[str]:
    scheme, pictures = seen
    context = browser.new_context(color_scheme=scheme)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    page.on(
        "request", lambda request: _note(wrong, f"{page.url} asks for {request.url}", ok=request.url.startswith((root, "data:", "blob:")))
    )
    page.on("response", lambda response: _note(wrong, f"{response.url} is {response.status}", ok=response.status < BAD_REQUEST))
    for path in paths:
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if width == WIDTHS[0]:
                page.goto(root + path)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if over > 0:
                wrong.append(f"/{path}: {over} pixels wider than the window of {width}")
            if path in {"", *SEARCHED.values()}:
                page.screenshot(path=pictures / f"{path.strip('/').replace('/', '-') or 'start'}-{width}-{scheme}.png")
        contrast, ground = page.evaluate(CONTRAST)
        if contrast < 4.5 or (ground > 0.5) != (scheme == "light"):  # noqa: PLR2004 - WCAG's AA, and the middle
            wrong.append(f"/{path}: contrast {contrast:.1f} on a ground of luminance {ground:.2f} in {scheme}")
    context.close()
    return wrong


def _note(wrong: list[str], line: str, *, ok: bool) -> None:
    if not ok:
        wrong.append(line)


def _searched(browser: Browser, root: str, pictures: Path) -> Iterator[str]:
    for word, expected in SEARCHED.items():
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(root)
        found = _results(page, word)
        page.screenshot(path=pictures / f"search-{word}.png")
        if not any(expected in link for link in found):
            yield f"the search for {word} does not find {expected}, but {', '.join(found)}"
        page.close()


def _results(page: Page, word: str) -> list[str]:
    """Search as a reader does, and return the addresses of what is found."""
    page.get_by_role("button", name="Search").first.click()
    page.get_by_role("combobox", name="Search").fill(word)
    found = page.locator("[role=listbox] a")
    found.first.wait_for()
    return [str(link.get_attribute("href")) for link in found.all()]
