"""Understanding jobs: each state of one once."""

from typing import Any, cast

import msgspec
import pytest

from fakes.world import mpijob
from mpiop.api.parse import parse_mpijob
from mpiop.api.types import MPIJob
from mpiop.controller.errors import InvalidJobError
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.job_reader import CAPACITY, Reader
from mpiop.controller.observe.stored_specs import Specs, stored_spec
from mpiop.kube.objects import Object, key_of

SPECS = Specs()


def stored(raw: Object) -> Object:
    """Return an MPIJob as a store has it."""
    return SPECS.trimmed(raw)


def whole(mpijob: Object) -> Object:
    """Return an MPIJob of a store with its spec decoded."""
    return cast("Object", {**mpijob, "spec": msgspec.json.decode(stored_spec(mpijob).text or b"")})


def read(reader: Reader, mpijob: Object) -> MPIJob:
    """Return the job as a sync reads it."""
    key, spec = key_of(mpijob), stored_spec(mpijob).text
    assert spec is not None
    return reader.known(key, mpijob) or reader.read(key, mpijob, spec)


def test_the_same_state_of_a_job_is_understood_once_and_another_anew() -> None:
    reader, raw = Reader(JobMemory()), stored(mpijob(workers=2))
    job = read(reader, raw)
    assert read(reader, raw) is job
    assert read(reader, stored(mpijob(workers=3))).worker_replicas == 3
    assert read(reader, raw) is not job, "the store holds one state of a job, and so does the reader"


def later(raw: Object, **changes: Any) -> Object:
    """Return a later state of a job as a store has it: what did not change is the same object."""
    metadata: Any = {**raw["metadata"], **changes.pop("metadata", {})}
    new: Any = {**raw, **changes, "metadata": metadata}
    return cast("Object", new)


def test_of_a_job_whose_status_alone_has_changed_the_spec_is_not_parsed_again() -> None:
    reader, raw = Reader(JobMemory()), stored(mpijob(workers=2))
    job = read(reader, raw)
    reported = later(raw, metadata={"resourceVersion": "7", "annotations": {"a": "b"}}, status={"startTime": "2026-11-22T10:00:00Z"})
    again = read(reader, reported)
    assert again == parse_mpijob(whole(reported)) != job
    assert again.launcher is job.launcher


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"spec": stored(mpijob(workers=3)).get("spec")}, id="another spec"),
        pytest.param({"metadata": {"uid": "another"}}, id="another job of that name"),
        pytest.param({"metadata": {"generation": 9}}, id="a generation that says so"),
        *(
            pytest.param({"metadata": {"annotations": {f"mpiop.kubeflow.org/{name}": value}}}, id=f"another annotation {name}")
            for name, value in (("ssh", "Injected"), ("slots", "Auto"), ("shm", "8Gi"))
        ),
    ],
)
def test_a_job_that_has_changed_otherwise_is_parsed_whole(changes: dict[str, Any]) -> None:
    reader, raw = Reader(JobMemory()), stored(mpijob(workers=2))
    job = read(reader, raw)
    edited = later(raw, **changes)
    again = read(reader, edited)
    assert again == parse_mpijob(whole(edited))
    assert again.launcher is not job.launcher


def test_a_bounded_number_of_jobs_is_remembered() -> None:
    reader, raws = Reader(JobMemory()), [stored(mpijob(f"job-{number}")) for number in range(CAPACITY + 1)]
    jobs = [read(reader, raw) for number, raw in enumerate(raws)]
    assert read(reader, raws[-1]) is jobs[-1]
    assert read(reader, raws[0]) is not jobs[0]


def test_the_message_about_thousands_of_errors_is_short() -> None:
    message = str(InvalidJobError([f"spec.x[{index}]: Invalid value: {'y' * 1000}" for index in range(5000)]))
    assert len(message) < 10_000
    assert message.endswith("and 4980 more")
