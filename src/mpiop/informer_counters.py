"""What informers report: counts for the metrics, and what is out of reach for the probes."""

import asyncio
from typing import Final

from mpiop.kube.resources import Selection
from mpiop.metrics import Metrics

OUT_OF_REACH_SECONDS: Final = 10.0
"""A restart of the API server is shorter, and does not make a replica unready."""


class InformerCounters:
    """Counts what informers do (`mpiop.informers.InformerMetrics`), by the resource that they follow, and knows since when it fails."""

    def __init__(self, metrics: Metrics) -> None:
        """Count in `metrics`."""
        self._metrics = metrics
        self._failing_since: dict[Selection, float] = {}
        self._failures: dict[Selection, Exception] = {}

    def out_of_reach(self) -> dict[Selection, str]:
        """Return a sentence for each selection that could not be followed for a while."""
        now = asyncio.get_running_loop().time()
        ages = {selection: now - since for selection, since in self._failing_since.items()}
        return {at: f"{at} out of reach for {age:.0f} s" for at, age in ages.items() if age >= OUT_OF_REACH_SECONDS}

    def failure(self, selection: Selection) -> Exception | None:
        """Return why `selection` could not be followed when that was tried last; None while it never failed."""
        return self._failures.get(selection)

    def listed(self, selection: Selection, objects: int) -> None:
        """Count a list or watch-list."""
        del objects
        self._failing_since.pop(selection, None)
        self._metrics.informer_lists.labels(selection.resource.plural).inc()

    def watch_opened(self, selection: Selection) -> None:
        """Count a watch."""
        self._failing_since.pop(selection, None)
        self._metrics.informer_watches.labels(selection.resource.plural).inc()

    def event_received(self, selection: Selection) -> None:
        """Count nothing: the staleness metric shows when the last one arrived."""

    def failed(self, selection: Selection, error: Exception) -> None:
        """Count a failure; the reflector logs it."""
        self._failures[selection] = error
        self._failing_since.setdefault(selection, asyncio.get_running_loop().time())
        self._metrics.informer_failures.labels(selection.resource.plural).inc()
