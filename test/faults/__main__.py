"""`python -m faults`: run the fault matrix against an embedded control plane, then the rows that need nodes, and print what failed."""

import argparse
import asyncio
import os
import signal
import sys
from typing import Final

from demonstration.cluster import ROOT
from faults.matrix import ROWS
from faults.suite import Choice, run_suite

E2E_ROWS: Final = frozenset({"F54", "F55", "F69", "F72"})
"""Rows that need a kubelet, another CRD or other rights: tests in test/e2e that have the number in their names."""


def main() -> int:
    """Run what the arguments choose; return 0 when all of it held."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--rows", default="", help="rows of the matrix, for example F8,F13 (default: all)")
    parser.add_argument("--case", default="", help="one case by its name, as a failure prints it")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="every so many cases of each row only, so that at most N run")
    parser.add_argument("--parallel", type=int, default=6, metavar="N", help="runs side by side, and as many more that wait for minutes")
    parser.add_argument(
        "--lease", type=int, default=2, metavar="SECONDS", help="lease duration; longer where the machine is busy (default: 2)"
    )
    parser.add_argument("--cluster", default="faults", help="name of the embedded cluster")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument("--list", action="store_true", help="only print the names of the cases")
    given = parser.parse_args()
    rows = frozenset(filter(None, given.rows.upper().replace(" ", ",").split(",")))
    if unknown := sorted(rows - E2E_ROWS - {row.number for row in ROWS}):
        parser.error(f"no such row: {', '.join(unknown)}; docs/faults.md has them all")
    choice = Choice(rows - E2E_ROWS, frozenset(filter(None, [given.case])), given.sample, given.list)
    status = _run_matrix(choice, given) if choice.rows or not rows else 0
    in_e2e = sorted(rows & E2E_ROWS if rows else E2E_ROWS)
    if in_e2e and status == 0 and not (given.case or given.sample or given.list):
        os.execv(sys.executable, [sys.executable, "-m", "pytest", str(ROOT / "test" / "e2e"), "-k", " or ".join(in_e2e)])  # noqa: S606
    return status


def _run_matrix(choice: Choice, given: argparse.Namespace) -> int:
    running = run_suite(choice, cluster=given.cluster, parallel=given.parallel, lease_seconds=given.lease, keep=given.keep)
    for number in (signal.SIGINT, signal.SIGTERM):  # one way to be interrupted, also in the background of a shell, which ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    try:
        return asyncio.run(running)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
