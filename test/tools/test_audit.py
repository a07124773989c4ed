"""What is read of the API server's log of requests."""

import json
from pathlib import Path

import pytest

from e2e.audit import OPERATOR, requests_of_operators
from embedded.layout import layout_of


def line(second: int, name: str, *, user: str = OPERATOR, stage: str = "ResponseComplete") -> str:
    entry = {
        "stage": stage,
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02d}.000000Z",
        "verb": "patch",
        "user": {"username": user},
        "objectRef": {"resource": "mpijobs", "subresource": "status", "namespace": "default", "name": name},
        "responseStatus": {"code": 200},
    }
    return json.dumps(entry) + "\n"


def test_each_file_of_the_log_counts_and_half_a_line_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIOP_STATE", str(tmp_path))
    log = layout_of("busy").log("audit")
    log.parent.mkdir(parents=True)
    log.with_name("audit-2026-01-01T00-00-03.000.log").write_text(line(1, "first") + line(2, "other", user="somebody"), encoding="utf-8")
    newest = (line(5, "third"), line(4, "second"), line(6, "watch", stage="ResponseStarted"), line(7, "half")[:-9])
    log.write_text("".join(newest), encoding="utf-8")

    requests = requests_of_operators("busy", "default")

    assert [(request.name, request.verb, request.what, request.code) for request in requests] == [
        (name, "patch", "mpijobs/status", 200) for name in ("first", "second", "third")
    ]
