"""Waits that nothing explains."""

from typing import Any

from example_children import launcher
from mpiop.controller.status.unhandled import unhandled_problem


def job(**status: Any) -> Any:
    made = launcher()
    return {**made, "spec": {**made["spec"], "suspend": False}, "status": status}


def test_a_job_controller_that_creates_no_pod_is_reported() -> None:
    found = unhandled_problem(job())
    assert found is not None
    assert found.reason == "Unhandled"


def test_a_job_controller_that_may_back_off_after_failures_is_not() -> None:
    assert unhandled_problem(job(failed=4)) is None
