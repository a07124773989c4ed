"""Finds the queues of Kueue that the user may list."""

from collections.abc import Sequence

from mpiop.client.api import Api
from mpiop.client.errors import ClientError, ForbiddenError, NotFoundError

_GROUP = "/apis/kueue.x-k8s.io"


def queue_names(api: Api) -> Sequence[str] | None:
    """Return the queues of the namespace; None if the cluster does not have Kueue.

    Raises:
        ForbiddenError: The user may not list them.
    """
    try:
        version = api.get(_GROUP)["preferredVersion"]["version"]
        items = api.get(f"{_GROUP}/{version}/namespaces/{api.namespace}/localqueues")["items"]
    except NotFoundError:
        return None
    return [item["metadata"]["name"] for item in items]


def has_kueue(api: Api) -> bool:
    """Return whether the cluster has Kueue; True also if the user may not ask."""
    try:
        return queue_names(api) is not None
    except ForbiddenError:
        return True


def check_queue(api: Api, queue: str) -> None:
    """Check that a job of this queue would ever start; "" means without a queue.

    Raises:
        ClientError: The cluster does not have Kueue, or the namespace does not have this queue.
    """
    if not queue:
        return
    try:
        names = queue_names(api)
    except ForbiddenError:
        return
    if names is None:
        raise ClientError(f"--queue {queue} has no effect: the cluster does not have Kueue; leave the option out, or install Kueue")
    if queue not in names:
        raise ClientError(f"--queue {queue}: namespace {api.namespace} has {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    return f"only the queues {', '.join(names)}" if names else "no queue; ask an administrator for a LocalQueue"
