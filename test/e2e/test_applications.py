"""The applications of docs/examples.md that have images of their own: the command of the page and the manifest print what is expected."""

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import pytest

from e2e.applications import PAGE, from_manifest, missing_lines
from e2e.clusters import ROOT, load_images
from e2e.conftest import NAME
from e2e.kubectl import Kubectl
from e2e.plugin import new_tool
from e2e.shell import Shell


@dataclass(frozen=True)
class Example:
    """A folder of examples/applications, which is also the name of its image.

    Attributes:
        heading: Of the page.
    """

    name: str
    heading: str


EXAMPLES = (
    Example("hpcc", "HPL and STREAM"),
    Example("lammps", "LAMMPS"),
    Example("pytorch", "PyTorch"),
    Example("dask", "Dask"),
)


@pytest.fixture(scope="module", params=EXAMPLES, ids=attrgetter("name"))
def example(request: pytest.FixtureRequest, cluster: Kubectl) -> Example:
    """An example whose image is on the node."""
    assert cluster
    chosen: Example = request.param
    load_images(NAME, "agent", chosen.name)
    return chosen


def test_the_command_of_the_page_prints_what_is_expected(example: Example, namespace: Kubectl, tmp_path: Path) -> None:
    shell = Shell(new_tool(namespace, tmp_path).environment, ROOT)
    output = shell.follow(PAGE, example.heading, timeout_seconds=600)
    assert missing_lines(example.name, output) == [], output


def test_the_manifest_prints_what_is_expected(example: Example, namespace: Kubectl, tmp_path: Path) -> None:
    output = from_manifest(Shell(new_tool(namespace, tmp_path).environment, ROOT), example.name)
    assert missing_lines(example.name, output) == [], output
