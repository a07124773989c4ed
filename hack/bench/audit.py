"""What the API server's audit log says about the operator: how many requests of which kind."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from faults.ground import NAMESPACE

_OPERATOR = f"system:serviceaccount:{NAMESPACE}:{NAMESPACE}"
_SECONDS = len("2026-01-01T00:00:00.000")
_REFUSED = 400
_CONFLICT = 409


def requests_of(log: Path, namespace: str, since: str, until: str) -> Mapping[str, int]:
    """Count the operator's requests about objects of `namespace`: `create pods`, `patch mpijobs/status`, `patch pods: 409`.

    Args:
        log: The audit log.
        namespace: Of the jobs.
        since: Time before which requests do not count, in RFC 3339 and UTC.
        until: Time after which requests do not count.
    """
    counts = Counter[str]()
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if namespace not in line or _OPERATOR not in line:
                continue  # reading a line as JSON takes a hundred times as long
            entry = json.loads(line)
            target = entry.get("objectRef") or {}
            if entry["user"]["username"] != _OPERATOR or target.get("namespace") != namespace or entry["stage"] == "ResponseStarted":
                continue
            if not since[:_SECONDS] <= entry["requestReceivedTimestamp"][:_SECONDS] <= until[:_SECONDS]:
                continue
            resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            code = entry.get("responseStatus", {}).get("code", 0)
            counts[f"{entry['verb']} {resource}" + (f": {code}" if code >= _REFUSED else "")] += 1
    return dict(sorted(counts.items()))


def conflicts(requests: Mapping[str, int]) -> int:
    """Return how many of the requests were refused as conflicts."""
    return sum(count for name, count in requests.items() if name.endswith(f": {_CONFLICT}"))
