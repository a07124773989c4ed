"""The metrics that a work queue reports; `mpiop.metrics` names the series."""

from typing import Protocol


class QueueMetrics(Protocol):
    """Receives the queue's measurements as they happen.

    Two more are read when somebody asks: `WorkQueue.unfinished_seconds` and `WorkQueue.longest_running_seconds`.
    """

    def depth(self, keys: int) -> None:
        """Set the depth of the queue to `keys`."""
        ...

    def added(self) -> None:
        """Count an add of a key that was not queued."""
        ...

    def retried(self) -> None:
        """Count a delayed or rate-limited add."""
        ...

    def waited(self, seconds: float) -> None:
        """Observe that a key was queued for `seconds`."""
        ...

    def worked(self, seconds: float) -> None:
        """Observe that a key was processed for `seconds`."""
        ...


class NoQueueMetrics:
    """Discards all metrics."""

    def depth(self, keys: int) -> None:
        """Ignore it."""

    def added(self) -> None:
        """Ignore it."""

    def retried(self) -> None:
        """Ignore it."""

    def waited(self, seconds: float) -> None:
        """Ignore it."""

    def worked(self, seconds: float) -> None:
        """Ignore it."""
