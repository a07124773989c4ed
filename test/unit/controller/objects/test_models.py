"""What the builders make, judged by the models of the `kubernetes` package, which refuse fields that Kubernetes does not have.

Wire dicts have no type checker for their field names (docs/adr/0001-wire-dicts.md); this is the one.
"""

from dataclasses import replace
from typing import Any

import pytest
from kubernetes import client as models

from example_children import build_worker_pod
from example_jobs import PI
from mpiop.api.types import RunPolicy
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import build_config_map
from mpiop.controller.objects.launcher_job import build_launcher_job
from mpiop.controller.objects.service import build_service
from mpiop.controller.objects.ssh_secret import KeyPair, build_ssh_secret
from mpiop.controller.restart.policy import launcher_limits
from mpiop.kube.objects import Object

OPTIONS = BuildOptions(cluster_domain="cluster.local", gang_scheduler="volcano")
FULL = replace(
    PI, run_launcher_as_worker=True, run_policy=RunPolicy(ttl_seconds_after_finished=1, active_deadline_seconds=2, backoff_limit=3)
)


def round_trip(model: Any, obj: Object) -> dict[str, Any]:
    return model.model_validate(obj).model_dump(by_alias=True, exclude_none=True)  # type: ignore[no-any-return]  # the package has no types


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
@pytest.mark.parametrize("job", [PI, FULL], ids=["plain", "full"])
def test_no_field_is_lost(job: Any, implementation: str) -> None:
    job = replace(job, mpi_implementation=implementation)
    for model, obj in (
        (models.V1Service, build_service(job)),
        (models.V1ConfigMap, build_config_map(job, ["pi-worker-0"], OPTIONS)),
        (models.V1Pod, build_worker_pod(job, 0, OPTIONS)),
        (models.V1Job, build_launcher_job(job, OPTIONS, limits=launcher_limits(job), suspend=True)),
    ):
        assert round_trip(model, obj) == obj


def test_no_field_of_the_secret_is_lost() -> None:
    secret = build_ssh_secret(PI, KeyPair("private", "public"))
    lost = {**round_trip(models.V1Secret, secret), "data": secret.get("data")}  # the model decodes base64
    assert lost == secret
