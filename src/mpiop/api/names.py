"""Names of a job's launcher and workers: the operator gives them, and the tools for users find workers by them."""

from collections.abc import Sequence
from functools import lru_cache

from mpiop.kube.text import whole_number


def launcher_name(job_name: str) -> str:
    """Return the name of the launcher Job of that job, which is the host name of its pods, too."""
    return f"{job_name}-launcher"


def worker_prefix(job_name: str) -> str:
    """Return what the names of all workers of that job begin with."""
    return f"{job_name}-worker-"


def worker_name(job_name: str, index: int) -> str:
    """Return the name and host name of the worker pod with that index, counted from 0."""
    return f"{worker_prefix(job_name)}{index}"


@lru_cache(maxsize=8)  # a large job is synced many times, and each sync asks for them several times
def worker_names(job_name: str, count: int) -> Sequence[str]:
    """Return the names of the first `count` workers, by index."""
    return tuple(worker_name(job_name, index) for index in range(count))


def worker_index(job_name: str, pod_name: str) -> int | None:
    """Return the index of the worker of that job, desired or surplus, that can have this name; None if none can."""
    prefix = worker_prefix(job_name)
    text = pod_name.removeprefix(prefix)
    index = whole_number(text) if pod_name.startswith(prefix) else None
    return index if str(index) == text else None
