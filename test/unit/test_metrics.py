"""Metrics: the names that dashboards use, series that go again, and a page for each that exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpiop.controller.causes import CAUSES
from mpiop.metrics import Metrics
from mpiop.workqueue import QueueMetrics

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3")


def rendered(metrics: Metrics) -> list[str]:
    encode, _ = metrics.encoder("")
    body = encode()
    return body.decode().splitlines()


def sample(metrics: Metrics, name: str) -> list[str]:
    return [line for line in rendered(metrics) if line.startswith(name)]


def families(metrics: Metrics) -> Iterator[str]:
    for line in rendered(metrics):
        if match := re.match(r"# TYPE (\S+)", line):
            yield match[1]


@pytest.mark.parametrize("name", ["created", "successful", "failed"])
def test_the_counters_of_the_reference_have_its_names_and_start_at_zero(metrics: Metrics, name: str) -> None:
    assert sample(metrics, f"mpi_operator_jobs_{name}") == [f"mpi_operator_jobs_{name}_total 0.0"]
    getattr(metrics, f"jobs_{name}").inc()
    assert sample(metrics, f"mpi_operator_jobs_{name}") == [f"mpi_operator_jobs_{name}_total 1.0"]


def test_no_series_tells_when_it_was_created(metrics: Metrics) -> None:
    metrics.count_failure("OOMKilled")
    metrics.queue("mpijobs").waited(1)
    assert not [line for line in rendered(metrics) if "_created{" in line or "_created " in line]


def test_jobs_are_counted_by_state_on_each_scrape(metrics: Metrics) -> None:
    states = {"Running": 2, "ImagePull": 1}
    metrics.watch_jobs(lambda: states)
    assert sample(metrics, "mpiop_jobs{") == ['mpiop_jobs{state="Running"} 2.0', 'mpiop_jobs{state="ImagePull"} 1.0']
    del states["ImagePull"]
    assert sample(metrics, "mpiop_jobs{") == ['mpiop_jobs{state="Running"} 2.0']


def test_failed_writes_are_counted_by_resource_and_reason(metrics: Metrics) -> None:
    metrics.count_failed_write("pods", "Forbidden")
    assert sample(metrics, "mpiop_failed_writes_total{") == ['mpiop_failed_writes_total{reason="Forbidden",resource="pods"} 1.0']


def test_a_jobs_launcher_is_shown_by_job_and_by_pod_until_the_job_goes(metrics: Metrics) -> None:
    metrics.show_job(("ns", "pi"), "pi-launcher", ["pi-launcher-abcde"])
    metrics.show_job(("ns", "pi"), "pi-launcher", ["pi-launcher-abcde"])
    metrics.show_job(("other", "pi"), "pi-launcher", [])
    assert sample(metrics, "mpi_operator_job_info{") == [
        'mpi_operator_job_info{launcher="pi-launcher",namespace="ns"} 1.0',
        'mpi_operator_job_info{launcher="pi-launcher",namespace="other"} 1.0',
    ]
    assert sample(metrics, "mpi_operator_job_infos{") == ['mpi_operator_job_infos{launcher="pi-launcher-abcde",namespace="ns"} 1.0']
    metrics.show_job(("ns", "pi"), "pi-launcher", ["pi-launcher-fghij"])
    assert sample(metrics, "mpi_operator_job_infos{") == ['mpi_operator_job_infos{launcher="pi-launcher-fghij",namespace="ns"} 1.0']
    metrics.hide_job(("ns", "pi"))
    metrics.hide_job(("ns", "pi"))
    assert sample(metrics, "mpi_operator_job_infos{") == []
    assert sample(metrics, "mpi_operator_job_info{") == ['mpi_operator_job_info{launcher="pi-launcher",namespace="other"} 1.0']


HOSTILE = [f"Reason{number}" for number in range(150)] + ["", "a b", 'x"} 1\n', "😀" * 1000, "BackoffLimitExceeded/Reason7", "Forbidden/"]


def test_words_that_others_invent_make_no_series(metrics: Metrics) -> None:
    for word in HOSTILE:
        metrics.count_failure(word)
        metrics.count_restart(word)
        metrics.count_failed_write("pods", word)
    metrics.watch_jobs(lambda: dict.fromkeys(HOSTILE, 1))
    most = len(HOSTILE)
    for series in ("mpiop_job_failures_total{reason=", "mpiop_job_restarts_total{reason=", "mpiop_jobs{state="):
        assert sample(metrics, series) == [f'{series}"Other"}} {most - 1}.0', f'{series}"BackoffLimitExceeded/Other"}} 1.0']
    assert sample(metrics, "mpiop_failed_writes_total{") == [f'mpiop_failed_writes_total{{reason="Other",resource="pods"}} {most}.0']


def test_every_cause_has_a_series_of_its_own(metrics: Metrics) -> None:
    metrics.watch_jobs(lambda: dict.fromkeys(CAUSES, 1))
    assert len(sample(metrics, "mpiop_jobs{")) == len(CAUSES)


def test_Q49_a_work_queue_has_the_series_of_every_go_controller(metrics: Metrics) -> None:
    queue: QueueMetrics = metrics.queue("mpijobs")
    queue.depth(7)
    queue.added()
    queue.retried()
    queue.waited(0.02)
    queue.worked(2)
    metrics.watch_queue("mpijobs", lambda: 3.5, lambda: 2.5)
    page = rendered(metrics)
    for line in (
        'workqueue_depth{name="mpijobs"} 7.0',
        'workqueue_adds_total{name="mpijobs"} 1.0',
        'workqueue_retries_total{name="mpijobs"} 1.0',
        'workqueue_queue_duration_seconds_sum{name="mpijobs"} 0.02',
        'workqueue_work_duration_seconds_sum{name="mpijobs"} 2.0',
        'workqueue_unfinished_work_seconds{name="mpijobs"} 3.5',
        'workqueue_longest_running_processor_seconds{name="mpijobs"} 2.5',
    ):
        assert line in page


def test_requests_and_informers_are_measured(metrics: Metrics) -> None:
    metrics.observe_request("create", "pods", 201, 0.004)
    metrics.observe_request("create", "pods", 0, 10)
    metrics.watch_informer("pods", lambda: 12.0, lambda: 3.0, lambda: 2.0)
    page = rendered(metrics)
    assert 'mpiop_api_requests_total{code="201",resource="pods",verb="create"} 1.0' in page
    assert 'mpiop_api_requests_total{code="0",resource="pods",verb="create"} 1.0' in page
    assert 'mpiop_api_request_duration_seconds_sum{code="201",resource="pods",verb="create"} 0.004' in page
    assert 'mpiop_informer_staleness_seconds{informer="pods"} 12.0' in page
    assert 'mpiop_informer_backlog{informer="pods"} 3.0' in page
    assert 'mpiop_informer_unreadable{informer="pods"} 2.0' in page
    assert 'mpiop_informer_failures_total{informer="pods"} 0.0' in page, "a series that is absent cannot rise"
    assert 'mpiop_build_info{version="1.2.3"} 1.0' in page


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        pytest.param("", "text/plain; version=0.0.4", "", id="plain text"),
        pytest.param("text/plain;version=abc", "text/plain; version=0.0.4", "", id="a version that is none"),
        pytest.param("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", "# EOF\n", id="OpenMetrics"),
    ],
)
def test_the_format_is_the_one_that_the_scraper_prefers(metrics: Metrics, accept: str, content_type: str, end: str) -> None:
    encode, given = metrics.encoder(accept)
    body = encode()
    assert given.startswith(content_type)
    assert body.decode().endswith(end)


def test_every_metric_is_documented_and_nothing_else_is(metrics: Metrics) -> None:
    metrics.watch_jobs(dict)
    documented = set(re.findall(r"^\| `(\w+)", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE))
    assert documented == {name for name in families(metrics) if not name.startswith("process_")}
