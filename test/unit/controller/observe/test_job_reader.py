"""Understanding jobs: each state of one once."""

from typing import Any, cast

import pytest

from fakes.world import KEY, mpijob
from mpiop.api.parse import parse_mpijob
from mpiop.controller.observe.job_reader import CAPACITY, InvalidJobError, Reader
from mpiop.kube.objects import Key, Object


def test_the_same_state_of_a_job_is_understood_once_and_another_anew() -> None:
    reader, raw = Reader(), mpijob(workers=2)
    job = reader.read(KEY, raw)
    assert reader.read(KEY, raw) is job
    assert reader.read(KEY, mpijob(workers=3)).worker_replicas == 3
    assert reader.read(KEY, raw) is not job, "the store holds one state of a job, and so does the reader"


def later(raw: Object, **changes: Any) -> Object:
    """Return a later state of a job as a store has it: what did not change is the same object."""
    metadata: Any = {**raw["metadata"], **changes.pop("metadata", {})}
    new: Any = {**raw, **changes, "metadata": metadata}
    return cast("Object", new)


def test_of_a_job_whose_status_alone_has_changed_the_spec_is_not_parsed_again() -> None:
    reader, raw = Reader(), mpijob(workers=2)
    job = reader.read(KEY, raw)
    reported = later(raw, metadata={"resourceVersion": "7", "annotations": {"a": "b"}}, status={"startTime": "2026-11-22T10:00:00Z"})
    again = reader.read(KEY, reported)
    assert again == parse_mpijob(reported) != job
    assert again.launcher is job.launcher


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"spec": mpijob(workers=3)["spec"]}, id="another spec"),
        pytest.param({"metadata": {"uid": "another"}}, id="another job of that name"),
        pytest.param({"metadata": {"generation": 9}}, id="a generation that says so"),
        *(
            pytest.param({"metadata": {"annotations": {f"mpiop.kubeflow.org/{name}": value}}}, id=f"another annotation {name}")
            for name, value in (("ssh", "Injected"), ("slots", "Auto"), ("shm", "8Gi"))
        ),
    ],
)
def test_a_job_that_has_changed_otherwise_is_parsed_whole(changes: dict[str, Any]) -> None:
    reader, raw = Reader(), mpijob(workers=2)
    job = reader.read(KEY, raw)
    edited = later(raw, **changes)
    again = reader.read(KEY, edited)
    assert again == parse_mpijob(edited)
    assert again.launcher is not job.launcher


def test_what_is_wrong_with_a_job_is_said() -> None:
    with pytest.raises(InvalidJobError, match=r"^Found validation errors: .*slotsPerWorker"):
        Reader().read(KEY, mpijob(slotsPerWorker=-1))
    with pytest.raises(InvalidJobError, match=r"^Found validation errors: .*mpiReplicaSpecs"):
        Reader().read(KEY, mpijob(mpiReplicaSpecs={}))


def test_a_bounded_number_of_jobs_is_remembered() -> None:
    reader, raws = Reader(), [mpijob(f"job-{number}") for number in range(CAPACITY + 1)]
    jobs = [reader.read(Key("default", f"job-{number}"), raw) for number, raw in enumerate(raws)]
    assert reader.read(Key("default", f"job-{CAPACITY}"), raws[-1]) is jobs[-1]
    assert reader.read(Key("default", "job-0"), raws[0]) is not jobs[0]


def test_a_job_that_is_gone_is_forgotten() -> None:
    reader, raw = Reader(), mpijob()
    job = reader.read(KEY, raw)
    reader.forget(KEY)
    reader.forget(KEY)
    assert reader.read(KEY, raw) is not job


def test_an_annotation_that_was_made_wrong_is_refused() -> None:
    reader, raw = Reader(), mpijob()
    assert reader.read(KEY, raw).ssh == ""
    for choice in ("Injected", "Image"):
        assert reader.read(KEY, later(raw, metadata={"annotations": {"mpiop.kubeflow.org/ssh": choice}})).ssh == choice
    with pytest.raises(InvalidJobError, match=r"mpiop\.kubeflow\.org/ssh"):
        reader.read(KEY, later(raw, metadata={"annotations": {"mpiop.kubeflow.org/ssh": "Other"}}))
