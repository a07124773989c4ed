"""The queue between watch events and work: each key once, in order, never in two workers, failing keys ever more slowly."""

from mpiop.workqueue.measures import NoQueueMetrics, QueueMetrics
from mpiop.workqueue.queue import ShutDown, WorkQueue
from mpiop.workqueue.rate_limiters import BucketLimiter, ExponentialBackoff, MaxOf, RateLimiter, retry_limiter
from mpiop.workqueue.worker import NotReady, work

__all__ = [
    "BucketLimiter",
    "ExponentialBackoff",
    "MaxOf",
    "NoQueueMetrics",
    "NotReady",
    "QueueMetrics",
    "RateLimiter",
    "ShutDown",
    "WorkQueue",
    "retry_limiter",
    "work",
]
