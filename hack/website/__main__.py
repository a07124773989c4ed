"""The command behind `make docs`, `make docs-serve` and `make docs-look`: `python -m website build | serve | look`."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from pacing.forecast import Forecast
from pacing.pace import in_words
from website.check import broken_links
from website.staging import ROOT, stage

PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
ZENSICAL = (str(Path(sys.executable).parent / "zensical"),)
CONFIGURATION = ("--config-file", str(ROOT / "mkdocs.yml"))


class _Steps:
    """What is done, and how long the rest takes, on standard error."""

    def __init__(self) -> None:
        self._forecast = Forecast({"stage": 0.5, "render": 4, "check": 2}, ROOT / "build" / "docs-seconds.json")
        self._then = time.monotonic()
        self._tell("building the site")

    def done(self, what: str) -> None:
        """Print what was done since the last one."""
        now = time.monotonic()
        self._forecast.done(now - self._then)
        self._then = now
        self._tell(what)

    def _tell(self, what: str) -> None:
        seconds = self._forecast.left_seconds()
        print(f"docs: {what}" + (f"; {in_words(seconds)} left" if seconds else ""), file=sys.stderr, flush=True)


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="website", description="Build, show or look at the site of documents.")
    parser.add_argument("verb", choices=("build", "serve", "look"))
    verb = parser.parse_args().verb
    screen = _Steps()
    count = stage(PAGES)
    screen.done("laid out the pages")
    if verb == "serve":
        print("A page that you change is shown after the next `make docs` in another terminal", flush=True)
        os.execv(ZENSICAL[0], [*ZENSICAL, "serve", *CONFIGURATION])  # noqa: S606 - no shell is wanted
    shutil.rmtree(SITE, ignore_errors=True)
    # Its own check sees the sources, ours the pages as they came out.
    if subprocess.run([*ZENSICAL, "build", "--strict", "--clean", *CONFIGURATION], cwd=ROOT, check=False).returncode:
        return 1
    screen.done("rendered them")
    if wrong := broken_links(SITE):
        sys.stderr.write("".join(f"{line}\n" for line in wrong))
        return 1
    screen.done("checked the links")
    print(f"{SITE.relative_to(ROOT)}: {count} pages and files that they link to")
    if verb == "look":
        from website.look import look  # noqa: PLC0415 - needs a browser

        return look(SITE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
