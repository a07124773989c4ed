"""Which launchers are asked to bind no rank to cores."""

from dataclasses import replace
from typing import Any

import pytest

from example_jobs import PI, container, template, with_launcher, with_worker
from mpiop.api.types import MPIJob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_template

INJECTED = replace(PI, ssh="Injected")
UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}


def settings(job: MPIJob, options: BuildOptions = BuildOptions()) -> dict[str, Any]:  # noqa: B008 - frozen
    """Return the variables about binding that the launcher has."""
    [launcher] = build_launcher_template(job, options)["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in launcher["env"]}
    return {name: value for name, value in variables.items() if "binding" in name or "PIN" in name}


@pytest.mark.parametrize(
    ("implementation", "variables"),
    [("OpenMPI", UNBOUND), ("Intel", {"I_MPI_PIN": "0"}), ("MPICH", {})],
)
def test_each_library_is_told_in_its_own_words(implementation: str, variables: dict[str, str]) -> None:
    assert settings(replace(INJECTED, mpi_implementation=implementation)) == variables


def test_a_job_with_ssh_of_its_image_is_as_with_the_reference() -> None:
    assert settings(PI) == {}
    assert settings(PI, BuildOptions(ssh="Injected")) == UNBOUND


@pytest.mark.parametrize(
    ("resources", "is_bound"),
    [
        pytest.param({}, False, id="no CPU"),
        pytest.param({"requests": {"cpu": "500m"}}, False, id="a part of a CPU"),
        pytest.param({"limits": {"cpu": "500m"}}, False, id="never more than a part"),
        pytest.param({"requests": {"cpu": "2"}}, False, id="no limit, so the cores are shared"),
        pytest.param({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, False, id="a higher limit"),
        pytest.param({"limits": {"cpu": "2500m"}}, False, id="not whole"),
        pytest.param({"limits": {"cpu": "two"}}, False, id="no quantity"),
        pytest.param({"limits": {"cpu": "0"}}, False, id="none"),
        pytest.param({"limits": {"cpu": "2"}}, True, id="the request is the limit"),
        pytest.param({"limits": {"cpu": 2}, "requests": {"cpu": "2000m"}}, True, id="equal in other words"),
    ],
)
def test_workers_that_may_have_cores_of_their_own_are_bound(resources: dict[str, Any], *, is_bound: bool) -> None:
    job = with_worker(INJECTED, template(container(resources=resources)))
    assert settings(job) == ({} if is_bound else UNBOUND)


@pytest.mark.parametrize(
    "launcher",
    [
        {"command": ["mpirun", "--bind-to", "core", "pi"]},
        {"command": ["mpirun"], "args": ["--map-by", "slot:PE=2", "pi"]},
        {"command": ["sh", "-c", "mpirun -genv I_MPI_PIN_DOMAIN=core pi"]},
        {"env": [{"name": "OMPI_MCA_rmaps_base_mapping_policy", "value": "slot:PE=2"}]},
        {"env": [{"name": "PRTE_MCA_hwloc_default_cpu_list", "value": "0"}]},
    ],
    ids=str,
)
def test_what_the_launcher_says_about_binding_is_left_alone(launcher: dict[str, Any]) -> None:
    assert not set(settings(with_launcher(INJECTED, template(container(**launcher))))) & set(UNBOUND)
