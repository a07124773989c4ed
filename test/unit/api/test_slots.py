"""Slots from resources, as the annotation `mpiop.kubeflow.org/slots` has them."""

from typing import Any

import pytest

from example_jobs import container, template
from mpiop.api.parse import parse_mpijob
from mpiop.api.slots import slots_of

AUTO = {"mpiop.kubeflow.org/slots": "Auto"}


@pytest.mark.parametrize(
    ("resources", "slots"),
    [
        pytest.param({"requests": {"cpu": "4"}}, 4, id="whole CPUs"),
        pytest.param({"requests": {"cpu": 4}}, 4, id="a number"),
        pytest.param({"requests": {"cpu": "3900m"}}, 3, id="a part of a CPU does not count"),
        pytest.param({"requests": {"cpu": "500m"}}, 1, id="less than a CPU"),
        pytest.param({"limits": {"cpu": "4"}}, 4, id="a limit where there is no request"),
        pytest.param({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, 2, id="a request comes before a limit"),
        pytest.param({"requests": {"cpu": "16"}, "limits": {"nvidia.com/gpu": "8"}}, 8, id="GPUs come before CPUs"),
        pytest.param({"limits": {"amd.com/gpu": 2}}, 2, id="AMD"),
        pytest.param({"limits": {"gpu.intel.com/i915": "1", "gpu.intel.com/xe": "2"}}, 3, id="Intel"),
        pytest.param({"requests": {"cpu": "4"}, "limits": {"gpu.intel.com/millicores": "1000"}}, 4, id="shares of a GPU are not counted"),
        pytest.param({"requests": {"cpu": "4"}, "limits": {"nvidia.com/gpu": "0"}}, 4, id="no GPU"),
        pytest.param({}, 1, id="nothing asked for"),
        pytest.param({"requests": {"cpu": "four"}}, 1, id="no quantity"),
        pytest.param({"requests": {"cpu": "1e999999999"}}, 1, id="a number that takes long to write"),
        pytest.param({"requests": {"cpu": "1E"}}, 2**31 - 1, id="a large quantity"),
        pytest.param({"requests": {"cpu": 10**5000}}, 2**31 - 1, id="a large number"),
        pytest.param({"requests": {"cpu": "-1"}}, 1, id="less than nothing"),
    ],
)
def test_slots_are_what_the_first_container_asks_for(resources: dict[str, Any], slots: int) -> None:
    sidecar = container(resources={"limits": {"nvidia.com/gpu": "64"}})
    assert slots_of(template(container(resources=resources), sidecar)) == slots


def job_of(annotations: dict[str, Any], *, has_workers: bool = True, **spec: Any) -> Any:
    launcher, worker = (template(container(resources={"limits": {"cpu": cpu}})) for cpu in ("2", "4"))
    roles = {"Launcher": {"template": launcher}, **({"Worker": {"template": worker}} if has_workers else {})}
    return {"metadata": {"name": "pi", "annotations": annotations}, "spec": {"mpiReplicaSpecs": roles, **spec}}


@pytest.mark.parametrize(
    ("annotations", "spec", "slots"),
    [
        pytest.param(AUTO, {}, 4, id="of the worker"),
        pytest.param(AUTO, {"slotsPerWorker": 1}, 4, id="the annotation wins over the stored default"),
        pytest.param(AUTO, {"has_workers": False, "runLauncherAsWorker": True}, 2, id="of a launcher on its own"),
        pytest.param({}, {}, 1, id="without the annotation"),
        pytest.param({"mpiop.kubeflow.org/slots": ""}, {"slotsPerWorker": 3}, 3, id="an empty annotation says nothing"),
    ],
)
def test_which_container_is_counted(annotations: dict[str, Any], spec: dict[str, Any], slots: int) -> None:
    assert parse_mpijob(job_of(annotations, **spec)).slots_per_worker == slots
