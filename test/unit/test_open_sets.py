"""Open sets are tables: a new member is one row, and whatever does not follow from the row is named here if it is forgotten."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpiop.api.mpi_implementations import IMPLEMENTATIONS, Implementation

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = [pytest.param(row, id=name) for name, row in IMPLEMENTATIONS.items()]


@pytest.mark.parametrize("kind", ["library"])
def test_one_row_makes_a_new_member_known_everywhere(kind: str) -> None:
    # In a process of its own: modules read the tables when they are imported.
    program = f"import new_members.{kind}, new_members.check_{kind} as check; check.main()"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_guide_to_images_names_the_variables_of_each_library(library: Implementation) -> None:
    row = next(
        line for line in (ROOT / "docs/images.md").read_text(encoding="utf-8").splitlines() if line.startswith(f"| {library.name} |")
    )
    variables = {*library.environment, *library.additions, *library.ssh_variables, library.interface_variable} - {""}
    assert set(re.findall("`([A-Za-z_]+)`", row)) - {"hostNetwork"} == variables


def test_the_agent_knows_the_programs_of_each_library() -> None:
    source = (ROOT / "agent/internal/process/process.go").read_text(encoding="utf-8")
    starters = re.findall('"(.+?)"', source.partition("starters = []string{")[2].partition("}")[0])
    programs = {program for row in IMPLEMENTATIONS.values() for program in (*row.commands, *row.processes)}
    assert {program for program in programs if not program.startswith(tuple(starters))} == set()
    assert set(starters) - programs == set()
