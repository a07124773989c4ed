"""The Service: when it publishes names; the whole of it is in test_word_by_word."""

from dataclasses import replace

import pytest

from example_jobs import PI
from mpiop.controller.builders.service import build_service


@pytest.mark.parametrize(
    ("implementation", "launcher_works", "published"),
    [
        ("OpenMPI", False, False),
        ("OpenMPI", True, True),
        ("Intel", False, True),
        ("Intel", True, True),
        ("MPICH", False, True),
    ],
)
def test_a_launcher_that_must_be_found_is_published_before_it_is_ready(
    implementation: str, *, launcher_works: bool, published: bool
) -> None:
    service = build_service(replace(PI, mpi_implementation=implementation, run_launcher_as_worker=launcher_works))
    assert service["spec"]["publishNotReadyAddresses"] is published
