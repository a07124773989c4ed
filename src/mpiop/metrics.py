"""What the operator counts and measures; names and labels are documented in docs/reference/metrics.md.

The five `mpi_operator_*` names that existing dashboards use are fixed; `workqueue_*` are those of every Go controller.
"""

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from mpiop.metric_labels import reason_label, refusal_label

_QUEUE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0)
_REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JOB_BUCKETS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_DURATION_BUCKETS: Final = (10.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0)


class QueueSeries:
    """The series of one work queue (`mpiop.workqueue.QueueMetrics`)."""

    def __init__(self, depth: Gauge, adds: Counter, retries: Counter, waiting: Histogram, working: Histogram) -> None:
        """Report to these series."""
        self._depth = depth
        self._adds = adds
        self._retries = retries
        self._waiting = waiting
        self._working = working

    def depth(self, keys: int) -> None:
        """Show that `keys` wait."""
        self._depth.set(keys)

    def added(self) -> None:
        """Count a key that was queued."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a key that was asked for again."""
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        """Observe how long a key waited."""
        self._waiting.observe(seconds)

    def worked(self, seconds: float) -> None:
        """Observe how long the work on a key took."""
        self._working.observe(seconds)


class JobStates:
    """The series `mpiop_jobs`, counted at each scrape (a `Collector` of prometheus_client)."""

    def __init__(self, states: Callable[[], Mapping[str, int]]) -> None:
        """Show the number of jobs that `states` returns for each state."""
        self._states = states

    def collect(self) -> Iterable[Metric]:
        """Yield the gauge."""
        family = GaugeMetricFamily("mpiop_jobs", "MPI jobs, by the state that kubectl shows", labels=["state"])
        counts = Counts[str]()
        for state, jobs in self._states().items():
            counts[reason_label(state)] += jobs
        for state, jobs in counts.items():
            family.add_metric([state], jobs)
        yield family


JobKey = tuple[str, str]


class Metrics:
    """All metrics of one operator, in a registry of their own; made once and passed on.

    The attributes are `prometheus_client` metrics, to be incremented and observed where things happen.
    """

    def __init__(self, *, version: str) -> None:
        """Register every metric; `version` is that of the operator."""
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the package types it half; else each counter brings a series named `…_created`
        self.registry = CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        self._gauge("mpiop_build_info", "Version of the operator; always 1", ("version",)).labels(version).set(1)
        self.asyncio_tasks = self._gauge("mpi_operator_asyncio_tasks", "Tasks of the event loop; a steady increase indicates a leak")
        self._define_jobs()
        self._define_queue()
        self._define_traffic()
        self._shown: dict[JobKey, tuple[str, frozenset[str]]] = {}

    def _define_jobs(self) -> None:
        self.jobs_created = self._counter("mpi_operator_jobs_created_total", "Counts number of MPI jobs created")
        self.jobs_successful = self._counter("mpi_operator_jobs_successful_total", "Counts number of MPI jobs successful")
        self.jobs_failed = self._counter("mpi_operator_jobs_failed_total", "Counts number of MPI jobs failed")
        self._job_info = self._gauge(
            "mpi_operator_job_info", "Information about MPIJob: its launcher Job; always 1", ("launcher", "namespace")
        )
        self._job_infos = self._gauge(
            "mpi_operator_job_infos", "Information about MPIJob: each pod of its launcher; always 1", ("launcher", "namespace")
        )
        self.is_leader = self._gauge("mpi_operator_is_leader", "Whether this replica is the leader and works on MPI jobs")
        self._failures = self._counter("mpiop_job_failures_total", "MPI jobs failed, by the reason of the condition", ("reason",))
        self.time_to_running_seconds = self._histogram(
            "mpiop_job_time_to_running_seconds", "From the start of an MPI job until its launcher and workers run", (), _JOB_BUCKETS
        )
        self.job_duration_seconds = self._histogram(
            "mpiop_job_duration_seconds", "From the start of an MPI job until it Succeeded or Failed", (), _DURATION_BUCKETS
        )
        self._restarts = self._counter("mpiop_job_restarts_total", "Restarts of MPI jobs, by what was lost", ("reason",))
        self.launcher_failures = self._counter(
            "mpiop_launcher_failures_total", "Failed attempts of launchers; a repeated cause is not counted again"
        )

    def _define_queue(self) -> None:
        name = ("name",)
        self._queue_depth = self._gauge("workqueue_depth", "Keys that wait in the queue", name)
        self._queue_adds = self._counter("workqueue_adds_total", "Keys added to the queue", name)
        self._queue_retries = self._counter("workqueue_retries_total", "Keys added again after a failure", name)
        self._queue_duration_seconds = self._histogram(
            "workqueue_queue_duration_seconds", "How long a key waits in the queue", name, _QUEUE_BUCKETS
        )
        self._queue_work_duration_seconds = self._histogram(
            "workqueue_work_duration_seconds", "How long the work on a key takes", name, _QUEUE_BUCKETS
        )
        self._queue_unfinished_work_seconds = self._gauge(
            "workqueue_unfinished_work_seconds", "Total time that workers have spent on keys in progress", name
        )
        self._queue_longest_running_seconds = self._gauge(
            "workqueue_longest_running_processor_seconds", "Age of the longest-running sync", name
        )

    def _define_traffic(self) -> None:
        self.sync_duration_seconds = self._histogram(
            "mpiop_sync_duration_seconds", "How long a sync of an MPI job takes", (), _QUEUE_BUCKETS
        )
        self.sync_errors = self._counter("mpiop_sync_errors_total", "Syncs that failed and will be retried")
        self._failed_writes = self._counter(
            "mpiop_failed_writes_total", "Writes of jobs that the API server rejected or did not answer", ("resource", "reason")
        )
        self._damped_writes = self._counter(
            "mpiop_damped_writes_total", "Writes of jobs that were delayed because another client repeatedly undoes them", ("resource",)
        )
        self._requests = self._counter(
            "mpiop_api_requests_total", "Requests to the API server; code 0 means no answer", ("verb", "resource", "code")
        )
        self._request_duration_seconds = self._histogram(
            "mpiop_api_request_duration_seconds",
            "Duration of requests to the API server; for a watch, until the answer begins",
            ("verb", "resource", "code"),
            _REQUEST_BUCKETS,
        )
        # To look them up by labels takes longer than to count.
        self._request_series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.events = self._counter("mpiop_events_total", "Events about MPI jobs, by outcome: written, dropped or limited", ("outcome",))
        self._define_informers()

    def _define_informers(self) -> None:
        name = ("informer",)
        self.informer_lists = self._counter("mpiop_informer_lists_total", "Complete reads of an informer, by a list or a watch-list", name)
        self.informer_watches = self._counter("mpiop_informer_watches_total", "Watches that an informer opened", name)
        self.informer_failures = self._counter(
            "mpiop_informer_failures_total", "Lists and watches of an informer that failed and were retried", name
        )
        self._backlog = self._gauge("mpiop_informer_backlog", "Changes that wait for the handlers of an informer", name)
        self._staleness_seconds = self._gauge(
            "mpiop_informer_staleness_seconds", "Time since the API server last sent anything on the watch of an informer", name
        )

        self._unreadable = self._gauge("mpiop_informer_unreadable", "Objects that exist but cannot be decoded", name)

    def queue(self, name: str) -> "QueueSeries":
        """Return what the work queue `name` reports to."""
        return QueueSeries(
            self._queue_depth.labels(name),
            self._queue_adds.labels(name),
            self._queue_retries.labels(name),
            self._queue_duration_seconds.labels(name),
            self._queue_work_duration_seconds.labels(name),
        )

    def watch_queue(self, name: str, unfinished_seconds: Callable[[], float], longest_running_seconds: Callable[[], float]) -> None:
        """Show on each scrape how long the work queue `name` has been busy then."""
        self._queue_unfinished_work_seconds.labels(name).set_function(unfinished_seconds)
        self._queue_longest_running_seconds.labels(name).set_function(longest_running_seconds)

    def observe_request(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count a request to the API server that took `seconds`; `code` is the HTTP status, 0 when there was no answer."""
        series = self._request_series.get((verb, resource, code))
        if series is None:
            labels = (verb, resource, str(code))
            series = self._requests.labels(*labels), self._request_duration_seconds.labels(*labels)
            self._request_series[verb, resource, code] = series
        count, duration_seconds = series
        count.inc()
        duration_seconds.observe(seconds)

    def watch_informer(
        self, name: str, staleness_seconds: Callable[[], float], backlog: Callable[[], float], unreadable: Callable[[], float]
    ) -> None:
        """Show on each scrape how stale the informer `name` is then, how far behind its handlers, and how many objects it cannot decode."""
        self._staleness_seconds.labels(name).set_function(staleness_seconds)
        self._backlog.labels(name).set_function(backlog)
        self._unreadable.labels(name).set_function(unreadable)
        for counter in (self.informer_lists, self.informer_watches, self.informer_failures):
            counter.labels(name)  # so that it shows 0 before anything happens

    def count_failure(self, reason: str) -> None:
        """Count a failed MPI job; `reason` is that of the condition, whose words may be a Pod's."""
        self._failures.labels(reason_label(reason)).inc()

    def count_restart(self, reason: str) -> None:
        """Count a restart of an MPI job; `reason` is one of the causes, or a Pod's own."""
        self._restarts.labels(reason_label(reason)).inc()

    def count_failed_write(self, resource: str, reason: str) -> None:
        """Count a failed write; `reason` is the API server's, for example Forbidden, or NoAnswer."""
        self._failed_writes.labels(resource, refusal_label(reason)).inc()

    def count_damped_write(self, resource: str) -> None:
        """Count a write that was delayed."""
        self._damped_writes.labels(resource).inc()

    def watch_jobs(self, states: Callable[[], Mapping[str, int]]) -> None:
        """Show on each scrape how many jobs are in each state then."""
        self.registry.register(JobStates(states))

    def show_job(self, key: JobKey, launcher_job: str, launcher_pods: Iterable[str]) -> None:
        """Show the launcher of the MPI job `key` (namespace, name), and no longer what was shown of it before."""
        pods = frozenset(launcher_pods)
        if self._shown.get(key) == (launcher_job, pods):
            return
        self.hide_job(key)
        namespace = key[0]
        self._job_info.labels(launcher_job, namespace).set(1)
        for pod in pods:
            self._job_infos.labels(pod, namespace).set(1)
        self._shown[key] = (launcher_job, pods)

    def hide_job(self, key: JobKey) -> None:
        """Remove the series of an MPI job that is gone; one that was never shown is all right."""
        if (shown := self._shown.pop(key, None)) is None:
            return
        launcher_job, pods = shown
        namespace = key[0]
        self._job_info.remove(launcher_job, namespace)
        for pod in pods:
            self._job_infos.remove(pod, namespace)

    def encoder(self, accept: str) -> tuple[Callable[[], bytes], str]:
        """Return what renders the metrics, and its content type, in the format that the header `accept` prefers."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that is not a number
            encode, content_type = choose_encoder("")
        return partial(encode, self.registry), content_type

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=buckets)
