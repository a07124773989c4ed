"""A fixed sample of the fault matrix (`make faults` runs all of it): every row whose cases take seconds, on a control plane of its own."""

from faults.matrix import ROWS
from faults.suite import Choice, run_suite

# Those that wait for minutes (late writes, silence, missing bookmarks), and those that disturb the whole server.
SLOW = frozenset({"F14", "F22", "F23", "F26", "F1", "F2", "F3", "F4"})
SAMPLE = 44


async def test_a_job_lives_through_a_sample_of_faults() -> None:
    rows = frozenset(row.number for row in ROWS) - SLOW
    assert await run_suite(Choice(rows, sample=SAMPLE), cluster="faults-sample", parallel=5, lease_seconds=4) == 0
