"""What a soak makes of its samples: flat courses pass, growth of any kind does not."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bench.soak_samples import Course, Sample, complaints, sample_of, table, windows

SECONDS = 1200.0
IDLE = Sample(at=-1, rss_mib=60, descriptors=15, tasks=30, cpu_seconds=1)


def flat(at: float) -> Sample:
    """Return what a replica that leaks nothing shows: busy, then not, by turns; and more memory from the first seconds on."""
    is_busy = at % 20 == 0
    return Sample(at, 60 + min(at / 20, 5), 15 + 8 * is_busy, 30 + 6 * is_busy, at / 10)


def course(change: Callable[[Sample], Sample], *, idle_after: Sample | None = None) -> Course:
    busy = [change(flat(float(at))) for at in range(5, int(SECONDS) + 1, 5)]
    return Course("leader", IDLE, busy, idle_after or replace(IDLE, at=SECONDS + 60, rss_mib=65))


def grown(sample: Sample, *, mib_an_hour: float = 0, descriptors_an_hour: float = 0, tasks_an_hour: float = 0) -> Sample:
    hours = sample.at / 3600
    return replace(
        sample,
        rss_mib=sample.rss_mib + mib_an_hour * hours,
        descriptors=sample.descriptors + int(descriptors_an_hour * hours),
        tasks=sample.tasks + int(tasks_an_hour * hours),
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param(lambda sample: sample, "", id="flat"),
        pytest.param(lambda sample: grown(sample, mib_an_hour=15), "", id="memory within the tolerance"),
        pytest.param(lambda sample: grown(sample, mib_an_hour=30), "memory", id="memory grows"),
        pytest.param(lambda sample: grown(sample, mib_an_hour=-30), "memory", id="memory was more when it was compared"),
        pytest.param(lambda sample: grown(sample, descriptors_an_hour=20), "descriptors do not come down", id="a descriptor in 3 minutes"),
        pytest.param(lambda sample: grown(sample, tasks_an_hour=20), "tasks do not come down", id="a task in 3 minutes"),
        pytest.param(lambda sample: replace(sample, rss_mib=90) if sample.at < 115 else sample, "", id="a peak before the warm-up is over"),
        pytest.param(lambda sample: replace(sample, rss_mib=90) if sample.at == 900 else sample, "90.0 MiB after 900 s", id="a peak later"),
        pytest.param(lambda sample: replace(sample, descriptors=40) if sample.at % 60 == 0 else sample, "", id="a peak that comes down"),
    ],
)
def test_a_course_is_judged_by_what_grows(change: Callable[[Sample], Sample], complaint: str) -> None:
    found = complaints(course(change))
    assert len(found) == bool(complaint), found
    assert complaint in "".join(found)


@pytest.mark.parametrize("what", ["descriptors", "tasks"])
def test_what_is_there_when_idle_is_the_same_before_and_after(what: str) -> None:
    after = replace(IDLE, at=SECONDS + 60, rss_mib=65, **{what: getattr(IDLE, what) + 1})
    [found] = complaints(course(lambda sample: sample, idle_after=after))
    assert found == f"leader: {getattr(after, what)} {what} when idle again, {getattr(IDLE, what)} before"


def test_a_soak_without_samples_is_no_pass() -> None:
    assert complaints(Course("leader", IDLE, [], IDLE)) == ["leader: no sample after the warm-up"]


@pytest.mark.parametrize(
    ("times", "lengths"),
    [
        pytest.param(range(0, 120, 5), [12, 12], id="two minutes"),
        pytest.param(range(0, 135, 5), [12, 15], id="a quarter of a minute more belongs to the last"),
        pytest.param(range(0, 160, 5), [12, 12, 8], id="more than half a minute stands alone"),
        pytest.param(range(0, 10, 5), [2], id="less than a minute in all"),
    ],
)
def test_samples_are_printed_by_the_minute(times: Sequence[int], lengths: Sequence[int]) -> None:
    assert [len(window) for window in windows([flat(float(at)) for at in times])] == list(lengths)


def test_a_sample_is_read_from_the_metrics_of_the_process() -> None:
    served = {
        "process_resident_memory_bytes": 64.0 * 2**20,
        "process_open_fds": 17.0,
        "mpi_operator_asyncio_tasks": 31.0,
        "process_cpu_seconds_total": 2.5,
    }
    assert sample_of(5, served) == Sample(5, 64, 17, 31, 2.5)
    with pytest.raises(KeyError):
        sample_of(5, {})


def test_the_table_has_a_line_a_minute_and_both_ends() -> None:
    lines = table([course(lambda sample: sample), replace(course(lambda sample: sample), name="standby")]).splitlines()
    assert "leader" in lines[0]
    assert "standby" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == ["idle", *map(str, range(1, 21)), "idle"]
    assert lines[3].split()[1:5] == ["60.2-63.0", "15-23", "30-36", "10.0"]
