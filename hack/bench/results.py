"""What a scenario yields: for each round the figures of each operator. The newest result of a scenario is kept as a file."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from demonstration.cluster import ROOT
from embedded.layout import GO_SOURCES

OURS: Final = "mpiop"
REFERENCE: Final = "reference"
FLOOR: Final = "floor"
"""Only the API server, without an operator."""

Sample: TypeAlias = Mapping[str, float]
"""What one run took, by figure."""
Round: TypeAlias = Mapping[str, Sample]
"""One run of each, by who ran."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a scenario took.

    Attributes:
        scenario: Its name.
        conditions: When and where it was measured, and which versions.
    """

    scenario: str
    conditions: str
    rounds: Sequence[Round]

    def values(self, who: str, figure: str) -> Sequence[float]:
        """Return a figure of `who` in each round that has it."""
        return [each[who][figure] for each in self.rounds if figure in each.get(who, {})]


def conditions() -> str:
    """Return when and where is measured, and which versions, as one sentence."""
    described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    memory = next(line for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines() if line.startswith("MemTotal"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({platform.machine()}), {round(int(memory.split()[1]) / 2**20)} GiB; "
        f"mpiop {described.strip()} with Python {platform.python_version()}; "
        f"mpi-operator {_released('kubeflow-mpi-operator', 'github.com/kubeflow/mpi-operator')}; "
        f"Kubernetes {_released('kubernetes', 'k8s.io/kubernetes')}"
    )


def _released(part: str, module: str) -> str:
    required = (line.split() for line in (GO_SOURCES / part / "go.mod").read_text(encoding="utf-8").splitlines())
    return next(words[1] for words in required if words[:1] == [module])


def write(folder: Path, result: Result) -> None:
    """Keep `result` as the newest of its scenario."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{result.scenario}.json").write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Mapping[str, Result]:
    """Return the newest results, by scenario."""
    found = [Result(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]
    return {result.scenario: result for result in found}
