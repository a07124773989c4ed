"""Some random MPIJobs (`make fuzz` tries 10,000), on a control plane of their own."""

from pathlib import Path

from embedded.progress import Progress
from fuzz.campaign import run_campaign


async def test_whatever_strangers_send_is_refused_or_served_or_told_what_is_wrong_with_it(tmp_path: Path) -> None:
    with Progress().step("random MPIJobs") as step:
        report = await run_campaign(150, 3, tmp_path, step, cluster="e2e-random-jobs")
    assert report.problems == []
    assert len({outcome for _, outcome in report.verdicts}) >= 4, report
