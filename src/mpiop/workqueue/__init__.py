"""The queue between watch events and work: each key once, in order, never in two workers, failing keys ever more slowly."""

from mpiop.workqueue.lanes import Lane
from mpiop.workqueue.measures import NoQueueMetrics, QueueMetrics
from mpiop.workqueue.queue import ShutDown, WorkQueue
from mpiop.workqueue.rate_limiters import BucketLimiter, ExponentialBackoff, MaxOf, RateLimiter, retry_limiter
from mpiop.workqueue.worker import work

__all__ = [
    "BucketLimiter",
    "ExponentialBackoff",
    "Lane",
    "MaxOf",
    "NoQueueMetrics",
    "QueueMetrics",
    "RateLimiter",
    "ShutDown",
    "WorkQueue",
    "retry_limiter",
    "work",
]
