"""`python -m fuzz`: random MPIJobs against an embedded control plane and the operator."""

import argparse
import asyncio
import logging
import shutil
import signal
import sys

import structlog

from demonstration.cluster import ROOT
from embedded.progress import Progress
from fuzz.campaign import run_campaign


def main() -> int:
    """Run as many as the arguments set; return 0 when nothing went wrong."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, metavar="N", help="how many jobs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which ones: the same for the same number (default: %(default)s)")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for number in (signal.SIGINT, signal.SIGTERM):  # one way to be interrupted, also in the background of a shell
        signal.signal(number, signal.default_int_handler)
    folder = ROOT / "build" / "fuzz" / str(given.seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    progress = Progress()
    progress.expect(1)
    try:
        with progress.step("random MPIJobs", f"{given.count} jobs") as step:
            report = asyncio.run(run_campaign(given.count, given.seed, folder, step))
    except KeyboardInterrupt:
        return 130
    print(report)  # noqa: T201 - a command prints
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
