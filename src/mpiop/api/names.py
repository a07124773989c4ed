"""Names of a job's workers: the operator gives them, and the tools for users find workers by them."""

from mpiop.kube.text import whole_number


def worker_prefix(job_name: str) -> str:
    """Return what the names of all workers of that job begin with."""
    return f"{job_name}-worker-"


def worker_name(job_name: str, index: int) -> str:
    """Return the name and host name of the worker pod with that index, counted from 0."""
    return f"{worker_prefix(job_name)}{index}"


def worker_index(job_name: str, pod_name: str) -> int | None:
    """Return the index of the worker of that job, desired or surplus, that can have this name; None if none can."""
    prefix = worker_prefix(job_name)
    text = pod_name.removeprefix(prefix)
    index = whole_number(text) if pod_name.startswith(prefix) else None
    return index if str(index) == text else None
