"""What is kept of the specs of MPIJobs: their JSON, equal ones once, and no more than a budget."""

from typing import Any, cast

import msgspec
import pytest

from fakes.world import mpijob
from mpiop.controller.observe.stored_specs import Specs, StoredSpec, stored_spec
from mpiop.kube.objects import Object


def received(**spec: Any) -> Object:
    """Return an MPIJob as it is decoded."""
    obj = mpijob(**spec)
    return cast("Object", {**obj, "spec": msgspec.Raw(msgspec.json.encode(obj.get("spec")))})


def padded(kib: int, mark: str = "") -> Object:
    return received(mpiImplementation=mark + "x" * 1024 * kib)


def kept(*stored: StoredSpec) -> list[bool]:
    return [spec.text is not None for spec in stored]


def test_equal_specs_are_one_and_others_are_not() -> None:
    specs = Specs()
    first, second, third = (stored_spec(specs.trimmed(received(slotsPerWorker=slots))) for slots in (1, 1, 2))
    assert first is second is not third
    assert first.text == msgspec.json.encode(mpijob(slotsPerWorker=1).get("spec"))


def test_a_spec_that_was_decoded_whole_is_the_same() -> None:
    specs = Specs()
    assert stored_spec(specs.trimmed(mpijob())) is stored_spec(specs.trimmed(received()))


def test_beyond_the_budget_the_largest_are_dropped_and_no_small_one() -> None:
    specs = Specs(budget_bytes=400 * 1024)
    small = [stored_spec(specs.trimmed(received(slotsPerWorker=number))) for number in range(20)]
    large = [stored_spec(specs.trimmed(padded(100 + number))) for number in range(20)]
    assert all(kept(*small))
    assert sum(spec.size for spec in (*small, *large) if spec.text is not None) <= 400 * 1024
    assert 2 <= sum(kept(*large)) <= 3


def test_specs_of_jobs_that_are_gone_leave_room() -> None:
    specs = Specs(budget_bytes=400 * 1024)
    for number in range(20):
        assert stored_spec(specs.trimmed(padded(150, str(number)))).text is not None


def test_a_dropped_spec_that_comes_again_is_kept_if_there_is_room() -> None:
    specs = Specs(budget_bytes=400 * 1024)
    jobs = [specs.trimmed(padded(150 + number)) for number in range(3)]
    dropped = stored_spec(jobs.pop())
    assert dropped.text is None
    jobs.clear()
    assert stored_spec(specs.trimmed(padded(152))) is dropped
    assert dropped.text is not None


@pytest.mark.parametrize(
    ("spec", "manager"),
    [
        ({}, "we"),
        ({"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}, "we"),
        ({"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}, "another"),
        ({"runPolicy": {"managedBy": 5}}, "we"),
        ({"runPolicy": "none"}, "we"),
        ("no object", "we"),
        (None, "we"),
    ],
)
def test_who_is_to_run_the_job_is_known_without_its_spec(spec: Any, manager: str) -> None:
    obj = cast("Object", {**mpijob(), "spec": spec})
    assert stored_spec(Specs(budget_bytes=0).trimmed(obj)).is_ours is (manager == "we")
