"""The Service: when it publishes names; the whole of it is compared by test/conformance."""

from dataclasses import replace

import pytest

from example_jobs import PI, template, with_launcher, with_worker
from mpiop.api.types import MPIJob
from mpiop.controller.objects.service import build_service

ON_NODES = template(hostNetwork=True)


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
@pytest.mark.parametrize(
    ("job", "is_published"),
    [
        (PI, ()),
        (replace(PI, run_launcher_as_worker=True), ("OpenMPI", "Intel", "MPICH")),
        (with_launcher(PI, ON_NODES), ("Intel", "MPICH")),
        (with_worker(PI, ON_NODES), ("Intel", "MPICH")),
    ],
    ids=["usual", "the launcher works", "the launcher on its node's network", "workers on their nodes' network"],
)
def test_a_launcher_that_must_be_found_is_published_before_it_is_ready(
    job: MPIJob, implementation: str, is_published: tuple[str, ...]
) -> None:
    service = build_service(replace(job, mpi_implementation=implementation))
    assert service["spec"]["publishNotReadyAddresses"] is (implementation in is_published)
