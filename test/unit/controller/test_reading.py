"""Understanding jobs: each state of one once."""

import pytest

from fakes.world import KEY, mpijob
from mpiop.controller.reading import CAPACITY, InvalidJobError, Reader
from mpiop.kube.objects import Key


def test_the_same_state_of_a_job_is_understood_once_and_another_anew() -> None:
    reader, raw = Reader(), mpijob(workers=2)
    job = reader.read(KEY, raw)
    assert reader.read(KEY, raw) is job
    assert reader.read(KEY, mpijob(workers=3)).worker_replicas == 3
    assert reader.read(KEY, raw) is not job, "the store holds one state of a job, and so does the reader"


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
