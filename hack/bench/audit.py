"""What the API server's audit log says about the operator: how many requests of which kind."""

from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus

from e2e.audit import requests_of_operators


def requests_of(cluster: str, namespace: str, since: float) -> Mapping[str, int]:
    """Count the operator's requests about objects of `namespace`: `create pods`, `patch mpijobs/status`, `patch pods: 409`.

    Args:
        cluster: Whose audit log.
        namespace: Of the jobs.
        since: Time before which requests do not count, in seconds since 1970.
    """
    counts = Counter[str]()
    for each in requests_of_operators(cluster, namespace):
        if each.at >= since:
            counts[f"{each.verb} {each.what}" + (f": {each.code}" if each.code >= HTTPStatus.BAD_REQUEST else "")] += 1
    return dict(sorted(counts.items()))


def conflicts(requests: Mapping[str, int]) -> int:
    """Return how many of the requests were refused as conflicts."""
    return sum(count for name, count in requests.items() if name.endswith(f": {HTTPStatus.CONFLICT}"))
