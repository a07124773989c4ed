"""What the API server's audit log reports about an operator: how many requests of which kind."""

from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus

from e2e.audit import requests_of_operators


def requests_of(cluster: str, namespace: str) -> Mapping[str, int]:
    """Count the operator's requests about objects of `namespace`: `create pods`, `patch mpijobs/status`, `patch pods: 409`."""
    counts = Counter[str]()
    for each in requests_of_operators(cluster, namespace):
        counts[f"{each.verb} {each.what}" + (f": {each.code}" if each.code >= HTTPStatus.BAD_REQUEST else "")] += 1
    return dict(sorted(counts.items()))
