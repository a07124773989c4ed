"""Every suite can be collected, also those that `make test` leaves out because they take long."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_suite_against_clusters_can_be_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "test/e2e", "test/conformance"]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout[-2000:]
