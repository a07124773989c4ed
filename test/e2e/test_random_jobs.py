"""Some random MPIJobs (`make fuzz` tries 10,000), on a control plane of their own."""

from pathlib import Path

from fuzz.campaign import run_campaign


async def test_whatever_strangers_send_is_refused_or_served_or_told_what_is_wrong_with_it(tmp_path: Path) -> None:
    report = await run_campaign(150, number=1, folder=tmp_path, cluster="e2e-random-jobs")
    assert report.problems == []
    assert len({outcome for _, outcome in report.verdicts}) >= 4, report
