"""The rate-limited work queue between watch events and syncs, after client-go's: a key is queued once and processed by one worker."""

from mpiop.workqueue.measures import NoQueueMetrics, QueueMetrics
from mpiop.workqueue.queue import ShutDown, WorkQueue
from mpiop.workqueue.rate_limiters import BucketLimiter, FailureLimiter, MaxOf, RateLimiter, retry_limiter
from mpiop.workqueue.turns import Turns, computing
from mpiop.workqueue.worker import NotReady, work

__all__ = [
    "BucketLimiter",
    "FailureLimiter",
    "MaxOf",
    "NoQueueMetrics",
    "NotReady",
    "QueueMetrics",
    "RateLimiter",
    "ShutDown",
    "Turns",
    "WorkQueue",
    "computing",
    "retry_limiter",
    "work",
]
