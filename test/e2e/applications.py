"""The applications of docs/examples.md, and what they must print."""

import re

from e2e.clusters import ROOT
from e2e.shell import Shell, commands_below

PAGE = "docs/examples.md"
FOLDER = ROOT / "examples/applications"
MANIFEST_HEADING = "From a manifest"
SHOWN = "latency"
"""The example that the page shows from a manifest; the commands are the same for the others."""
_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?"


def missing_lines(name: str, output: str) -> list[str]:
    """Return the lines of the expected.txt of the example `name` that do not follow one another in `output`.

    Blanks are compared as one space, and `<number>` means any number. Other lines may be between the expected ones.
    """
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    expected = (FOLDER / name / "expected.txt").read_text("utf-8").splitlines()
    return [line for line in expected if not any(re.fullmatch(_pattern(line), printed) for printed in lines)]


def from_manifest(shell: Shell, name: str) -> str:
    """Run the example `name` by the commands that the page shows for another one, and return what they printed."""
    return shell.run(re.sub(rf"\b{SHOWN}\b", name, commands_below(PAGE)[MANIFEST_HEADING]), timeout_seconds=660)


def _pattern(line: str) -> str:
    return re.escape(" ".join(line.split())).replace(re.escape("<number>"), _NUMBER)
