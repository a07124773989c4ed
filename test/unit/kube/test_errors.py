"""Errors: one line for people, the parts for decisions."""

from typing import Any

import pytest

from mpiop.kube.errors import StatusError


def test_the_message_is_one_line_that_says_what_where_and_why() -> None:
    error = StatusError("patch mpijobs/status a/b", {"code": 409, "reason": "Conflict", "message": "the object\nhas been modified"})
    assert str(error) == "patch mpijobs/status a/b: 409 Conflict: the object has been modified"
    assert error.status_message == "the object\nhas been modified"


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"code": None, "reason": None, "message": None, "details": None},
        {"code": "many", "details": "none"},
        {"details": {"causes": None, "retryAfterSeconds": None}},
        {"details": {"causes": [None, "x", {"message": "m"}]}},
        {"details": {"causes": 5, "retryAfterSeconds": "soon"}},
        {"code": 10**400, "details": {"retryAfterSeconds": float("inf")}},
    ],
)
def test_F21_a_status_without_its_parts_is_still_an_error(status: dict[str, Any]) -> None:
    error = StatusError("get pods a/b", status)
    assert error.code == 500
    assert error.reason == ""
    assert error.retry_after_seconds is None
    assert str(error) == "get pods a/b: 500: no message"


TABLE: list[tuple[dict[str, Any], set[str]]] = [
    ({"code": 404, "reason": "NotFound"}, {"is_not_found"}),
    ({"code": 409, "reason": "AlreadyExists"}, {"is_already_exists"}),
    ({"code": 409, "reason": "Conflict"}, {"is_conflict"}),
    ({"code": 409}, {"is_conflict"}),
    ({"code": 410, "reason": "Expired"}, {"is_expired"}),
    ({"code": 410}, {"is_expired"}),
    ({"code": 400, "reason": "Expired"}, {"is_expired", "is_invalid"}),
    ({"code": 401}, {"is_unauthorized"}),
    ({"code": 413}, {"is_invalid"}),
    ({"code": 422, "reason": "Invalid"}, {"is_invalid"}),
    ({"code": 403, "reason": "Forbidden"}, {"is_forbidden"}),
    ({"code": 403, "details": {"causes": [{"reason": "NamespaceTerminating"}]}}, {"is_forbidden", "is_terminating_namespace"}),
    ({"code": 504, "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}, {"is_too_large_resource_version"}),
    ({"code": 500, "message": "Too large resource version: 8, current: 7"}, {"is_too_large_resource_version"}),
    ({"code": 503}, set()),
]


@pytest.mark.parametrize(("status", "desired"), TABLE)
def test_what_the_answer_means(status: dict[str, Any], desired: set[str]) -> None:
    error = StatusError("x", status)
    questions = {name for name in dir(StatusError) if name.startswith("is_")}
    assert {name for name in questions if getattr(error, name)} == desired


def test_the_header_wins_over_the_details() -> None:
    status = {"code": 429, "details": {"retryAfterSeconds": 7}}
    assert StatusError("x", status).retry_after_seconds == 7
    assert StatusError("x", status, retry_after_seconds=2).retry_after_seconds == 2
