"""The command behind `make docs`, `make docs-serve` and `make docs-look`: `python -m website build | serve | look`."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from website.check import broken_links
from website.staging import ROOT, stage

PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
ZENSICAL = (str(Path(sys.executable).parent / "zensical"),)
CONFIGURATION = ("--config-file", str(ROOT / "mkdocs.yml"))


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="website", description="Build, show or look at the site of documents.")
    parser.add_argument("verb", choices=("build", "serve", "look"))
    verb = parser.parse_args().verb
    count = stage(PAGES)
    if verb == "serve":
        print("A page that you change is shown after the next `make docs` in another terminal", flush=True)
        os.execv(ZENSICAL[0], [*ZENSICAL, "serve", *CONFIGURATION])  # noqa: S606 - no shell is wanted
    shutil.rmtree(SITE, ignore_errors=True)
    # Its own check sees the sources, ours the pages as they came out.
    if subprocess.run([*ZENSICAL, "build", "--strict", "--clean", *CONFIGURATION], cwd=ROOT, check=False).returncode:
        return 1
    if wrong := broken_links(SITE):
        sys.stderr.write("".join(f"{line}\n" for line in wrong))
        return 1
    print(f"{SITE.relative_to(ROOT)}: {count} pages and files that they link to")
    if verb == "look":
        from website.look import look  # noqa: PLC0415 - needs a browser

        return look(SITE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
