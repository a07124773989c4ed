"""What a work queue tells about itself; the names of the series are the business of `mpiop.metrics`."""

from typing import Protocol


class QueueMetrics(Protocol):
    """Receives the queue's measurements as they happen.

    Two more are read when somebody asks: `WorkQueue.unfinished_seconds` and `WorkQueue.longest_running_seconds`.
    """

    def depth(self, keys: int) -> None:
        """`keys` now wait for a worker."""
        ...

    def added(self) -> None:
        """A key was queued that was not queued already."""
        ...

    def retried(self) -> None:
        """A key was asked for again with a delay, after a failure or for later."""
        ...

    def waited(self, seconds: float) -> None:
        """A worker took a key that was first asked for `seconds` ago."""
        ...

    def worked(self, seconds: float) -> None:
        """A worker is done with a key after `seconds`."""
        ...


class NoQueueMetrics:
    """Measures nothing."""

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
