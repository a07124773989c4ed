"""The Grafana dashboard: panels as rows of one table, rendered as JSON. test/e2e/test_monitoring.py asks Prometheus for each of them."""

import json
from dataclasses import dataclass
from typing import Any

UID = "mpi-operator"
WIDTH, HEIGHT = 8, 8
COLUMNS = 24 // WIDTH
"""Grafana's grid has 24 columns."""


@dataclass(frozen=True)
class Query:
    """A line, or several, of a panel.

    Attributes:
        expression: PromQL; `$__rate_interval` is Grafana's, four times the scrape interval at least.
        legend: Name of a line, with labels in `{{…}}`.
    """

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One picture over time.

    Attributes:
        title: Its heading.
        text: What it shows, and what to look for.
        unit: Grafana's name of the unit of all values.
        queries: What is drawn.
        is_stacked: Whether lines are drawn one upon the other.
    """

    title: str
    text: str
    unit: str
    queries: tuple[Query, ...]
    is_stacked: bool = False


def _rate(series: str, by: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({series}[$__rate_interval]))"


def _quantiles(series: str) -> tuple[Query, ...]:
    rows = (("0.5", "median"), ("0.99", "99 %"))
    return tuple(Query(f"histogram_quantile({quantile}, {_rate(f'{series}_bucket', 'le')})", name) for quantile, name in rows)


PANELS = (
    Panel(
        "Jobs by state",
        "As kubectl shows it: Running, Succeeded …, or the cause that stops a job. docs/reference/causes.md explains each.",
        "short",
        (Query("sum by (state) (mpiop_jobs)", "{{state}}"),),
        is_stacked=True,
    ),
    Panel(
        "Jobs created and ended",
        "Per second.",
        "cps",
        (
            Query(_rate("mpi_operator_jobs_created_total"), "created"),
            Query(_rate("mpi_operator_jobs_successful_total"), "succeeded"),
            Query(_rate("mpi_operator_jobs_failed_total"), "failed"),
        ),
    ),
    Panel(
        "Failed jobs by reason",
        "Per second. The reason is that of the condition Failed.",
        "cps",
        (Query(_rate("mpiop_job_failures_total", "reason"), "{{reason}}"),),
        is_stacked=True,
    ),
    Panel(
        "Start time",
        "From the start of a job until its launcher and all workers run: scheduling and image pulls, mostly.",
        "s",
        _quantiles("mpiop_job_time_to_running_seconds"),
    ),
    Panel("Duration of jobs", "From the start of a job until its end.", "s", _quantiles("mpiop_job_duration_seconds")),
    Panel(
        "Failed attempts of launchers",
        "Per second. A job continues after them until its backoffLimit is reached.",
        "cps",
        (Query(_rate("mpiop_launcher_failures_total"), "failed attempts"),),
    ),
    Panel(
        "Queue",
        "Jobs that wait for one of the operator's workers (--threadiness). More than a few for long: it does not keep up.",
        "short",
        (Query("sum by (name) (workqueue_depth)", "{{name}}"),),
    ),
    Panel("Time in the queue", "Until a worker of the operator takes a job up.", "s", _quantiles("workqueue_queue_duration_seconds")),
    Panel("Syncs of jobs", "How long one sync of a job takes, writes included.", "s", _quantiles("mpiop_sync_duration_seconds")),
    Panel(
        "Latency of the API server",
        "99th percentile by verb, as the operator sees it; of a watch, until its answer begins.",
        "s",
        (Query(f"histogram_quantile(0.99, {_rate('mpiop_api_request_duration_seconds_bucket', 'le, verb')})", "{{verb}}"),),
    ),
    Panel(
        "Requests to the API server",
        "Per second, by HTTP status; 0 means no response. A conflict (409) now and then is normal.",
        "reqps",
        (Query(_rate("mpiop_api_requests_total", "code"), "{{code}}"),),
        is_stacked=True,
    ),
    Panel(
        "Age of watches",
        "Since when the API server has sent nothing on a watch. Above 180 s the operator works with old data.",
        "s",
        (Query("max by (informer) (mpiop_informer_staleness_seconds)", "{{informer}}"),),
    ),
    Panel(
        "Leader",
        "1 for the replica that works. None for longer than a failover: jobs wait.",
        "short",
        (Query("max by (instance) (mpi_operator_is_leader)", "{{instance}}"),),
    ),
    Panel(
        "Memory of the operator",
        "Resident, by replica.",
        "bytes",
        (Query("process_resident_memory_bytes and on (instance) mpi_operator_is_leader", "{{instance}}"),),
    ),
    Panel(
        "CPU of the operator",
        "Seconds of processor time per second, by replica.",
        "short",
        (Query("rate(process_cpu_seconds_total[$__rate_interval]) and on (instance) mpi_operator_is_leader", "{{instance}}"),),
    ),
)


def dashboard() -> str:
    """Return the dashboard, for Grafana 11 and later; its data source is chosen above the panels."""
    wire = {
        "uid": UID,
        "title": "MPI Operator",
        "tags": ["mpi-operator"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(panel, number) for number, panel in enumerate(PANELS)],
    }
    return json.dumps(wire, indent=2, ensure_ascii=False) + "\n"


def _panel(panel: Panel, number: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    custom = {"fillOpacity": 30, "stacking": {"mode": "normal", "group": "A"}} if panel.is_stacked else {"fillOpacity": 0}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": source,
        "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": query.expression, "legendFormat": query.legend}
            for index, query in enumerate(panel.queries)
        ],
    }
