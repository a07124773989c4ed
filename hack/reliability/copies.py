"""Copies of the source and its tests, to be broken and tested."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from reliability.invariants import ROOT

MODULES = Path("src", "mpiop")
TESTS_FAILED = 1
"""pytest's exit status when tests ran and failed; others mean that it could not run them."""

_LEFT_OUT = {"build", "dist", "site"}


class Copy:
    """A copy of the source and tests in which one defect at a time is put."""

    def __init__(self, directory: Path) -> None:
        """Copy into `directory`, times included, so that compiled modules stay valid."""
        self.root = directory
        directory.mkdir(exist_ok=True)
        for source in ROOT.iterdir():
            if source.name.startswith(".") or source.name in _LEFT_OUT:
                continue
            if source.is_dir():
                shutil.copytree(source, directory / source.name, symlinks=True)
            else:
                shutil.copy2(source, directory / source.name)

    def write(self, file: str, text: str) -> None:
        """Let the module `file` (relative to src/mpiop) be `text`."""
        (self.root / MODULES / file).write_text(text, encoding="utf-8")

    def restore(self, file: str) -> None:
        """Make the module `file` as it was."""
        shutil.copy2(ROOT / MODULES / file, self.root / MODULES / file)

    async def test(self, ids: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Run the tests `ids` up to the first failure; return pytest's exit status, None after `seconds`, and what it wrote."""
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.root / "src")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", "-x", "--quiet", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"),
            *ids,
            cwd=self.root,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate()
        except TimeoutError:
            return None, ""
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, output.decode(errors="replace")
