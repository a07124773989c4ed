"""Open sets are tables: a new member is one row, and whatever does not follow from the row is named here if it is forgotten."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mpiop.api.gang_schedulers import GANG_SCHEDULERS, GangScheduler
from mpiop.api.mpi_implementations import IMPLEMENTATIONS, Implementation
from mpiop.controller.gang.gang import candidates

ROOT = Path(__file__).resolve().parents[2]
SCHEDULERS = [pytest.param(row, id=row.title) for row in GANG_SCHEDULERS.values()]
LIBRARIES = [pytest.param(row, id=name) for name, row in IMPLEMENTATIONS.items()]


@pytest.mark.parametrize("kind", ["library", "scheduler"])
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


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_each_kind_of_a_gang_has_a_builder(scheduler: GangScheduler) -> None:
    assert [tuple(part.resource for part in api) for api in candidates(scheduler.name)] == [*scheduler.apis]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_operator_has_the_rights_to_the_objects_of_each_gang_scheduler(scheduler: GangScheduler) -> None:
    roles = yaml.safe_load_all((ROOT / "manifests/base/cluster-role.yaml").read_text(encoding="utf-8"))
    rules = next(role for role in roles if role["kind"] == "ClusterRole")["rules"]
    granted = {(group, plural) for rule in rules if "patch" in rule["verbs"] for group in rule["apiGroups"] for plural in rule["resources"]}
    assert {(resource.group, resource.plural) for api in scheduler.apis for resource in api} <= granted


@pytest.mark.parametrize("page", ["docs/gang-scheduling.md", "docs/reference/flags.md"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_documents_name_each_gang_scheduler(scheduler: GangScheduler, page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert (scheduler.name or scheduler.title) in " ".join(line for line in lines if "`--gang-scheduling=" in line)
