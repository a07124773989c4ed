"""`--after`: a job is created when others have succeeded, and never if one has not."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi, raises, stored
from mpiop.client.errors import ForbiddenError, InvalidError, UnreachableError

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=melt {0}\nsrun ./solver\n"
Step = Callable[[], None]


def created(api: FakeApi) -> list[str]:
    return [request[1]["metadata"]["name"] for request in api.requests if request[0] == "create" and not request[2]]


def nothing() -> None: ...


def is_now(api: FakeApi, name: str, state: str, **status: Any) -> Step:
    return lambda: api.stored.update({name: stored(name, state=state, **status)})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found, job = tmp_path / "pi.yaml", stored()
    found.write_text(yaml.safe_dump(job | {"metadata": {"name": "pi"}, "status": {}}))
    return found


@pytest.fixture
def waited(api: FakeApi) -> FakeApi:
    """An API server with two jobs that run."""
    api.stored = {name: stored(name, state="Running") for name in ("prep", "mesh")}
    return api


@pytest.fixture(params=["run", "submit"])
def verb(request: pytest.FixtureRequest, file: Path) -> Sequence[str]:
    """Words that create the job pi after both."""
    after = ("--after=prep", "--after=mpijob.kubeflow.org/mesh")
    return ("run", "--image=i", "--name=pi", "--detach", *after, "./a") if request.param == "run" else ("submit", str(file), *after)


def test_the_job_is_created_when_both_others_have_succeeded(mpi: Any, waited: FakeApi, verb: Sequence[str]) -> None:
    before: list[list[str]] = []

    def recorded(step: Step) -> Step:
        return lambda: (before.append(created(waited)), step())[1]

    late = [nothing, nothing, is_now(waited, "prep", "Succeeded"), nothing, nothing, is_now(waited, "mesh", "Succeeded")]
    waited.steps = [recorded(step) for step in late]
    code, _, err = mpi(*verb)
    assert (code, before, created(waited)) == (0, [[]] * 6, ["pi"])
    assert [line for line in err.splitlines() if "waits" in line] == ["waits for mesh (Running)"]


FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded/Error", "message": "exit code 2"}]


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (
            lambda api: api.stored.update(mesh=stored("mesh") | {"status": {"conditions": FAILED}}),
            "mesh failed: BackoffLimitExceeded/Error: exit code 2",
        ),
        (lambda api: api.stored.pop("mesh"), "mesh was deleted or replaced before it had succeeded"),
        (
            lambda api: api.stored["mesh"].update(
                stored("mesh", state="Succeeded"), metadata={"name": "mesh", "namespace": "team", "uid": "other"}
            ),
            "mesh was deleted or replaced before it had succeeded",
        ),
    ],
    ids=["failed", "deleted", "another job of its name, which has succeeded"],
)
def test_nothing_is_created_if_another_job_does_not_succeed(
    mpi: Any, waited: FakeApi, verb: Sequence[str], end: Callable[[FakeApi], None], sentence: str
) -> None:
    waited.steps = [nothing] * 5 + [lambda: end(waited)]
    code, out, err = mpi(*verb)
    assert (code, out, created(waited), waited.config_maps) == (1, "", [], {})
    assert err.splitlines()[-1] == f"error: nothing was created, because job {sentence}"


def test_a_job_that_does_not_exist_is_not_waited_for(mpi: Any, waited: FakeApi, verb: Sequence[str]) -> None:
    del waited.stored["mesh"]
    code, out, err = mpi(*verb)
    assert (code, out, err, created(waited)) == (3, "", "error: job team/mesh: not found\n", [])


def test_ctrl_c_leaves_nothing_behind(mpi: Any, waited: FakeApi, file: Path) -> None:
    waited.steps = [nothing, raises(KeyboardInterrupt())]
    assert mpi("run", "--image=i", "--upload", str(file), "--after=prep", "./a") == (130, "", "\nstopped\n")
    assert (created(waited), waited.config_maps, set(waited.stored)) == ([], {}, {"prep", "mesh"})


def test_the_command_waits_while_the_api_server_does_not_answer_but_not_without_a_right(
    mpi: Any, waited: FakeApi, verb: Sequence[str]
) -> None:
    lost: list[Step] = [is_now(waited, "prep", "Succeeded"), raises(UnreachableError("no answer"))]
    waited.steps = [nothing, nothing, *lost, is_now(waited, "mesh", "Succeeded")]
    code, _, err = mpi(*verb)
    assert (code, created(waited)) == (0, ["pi"])
    assert "waits for the API server: no answer\n" in err
    waited.stored["mesh"], waited.stored["prep"] = stored("mesh", state="Running"), stored("prep", state="Running")
    del waited.stored["pi"]
    waited.steps = [nothing, nothing, raises(ForbiddenError("no right"))]
    assert mpi(*verb)[0::2] == (4, "error: no right\n")


def test_a_job_that_has_succeeded_counts_even_if_it_is_deleted_while_another_runs(mpi: Any, waited: FakeApi, verb: Sequence[str]) -> None:
    def prep_ends_and_goes() -> None:
        del waited.stored["prep"]

    lost = raises(UnreachableError("no answer"))
    waited.steps = [nothing, nothing, is_now(waited, "prep", "Succeeded"), lost, prep_ends_and_goes, is_now(waited, "mesh", "Succeeded")]
    assert (mpi(*verb)[0], created(waited)) == (0, ["pi"])


def test_a_mistake_is_reported_before_the_command_waits(mpi: Any, waited: FakeApi, verb: Sequence[str]) -> None:
    asked: list[None] = []
    waited.steps = [lambda: asked.append(None)]
    waited.answers["create"] = InvalidError("spec.slotsPerWorker: too many")
    code, _, err = mpi(*verb)
    assert (code, "spec.slotsPerWorker: too many" in err, asked) == (2, True, []), err


@pytest.mark.parametrize("option", ["--dry-run=client", "--dry-run=server"])
def test_a_dry_run_does_not_wait(mpi: Any, waited: FakeApi, verb: Sequence[str], option: str) -> None:
    del waited.stored["mesh"]
    assert (mpi(verb[0], option, *(word for word in verb[1:] if word != "--detach"))[0], created(waited)) == (0, [])


def test_an_array_starts_after_the_job_whose_name_it_may_share(mpi: Any, waited: FakeApi) -> None:
    waited.ends("Succeeded")
    waited.steps = [nothing, nothing, is_now(waited, "prep", "Succeeded")]
    code, out, _ = mpi("run", "--image=i", "--name=prep", "--array=1-2", "--after=prep", "./a")
    assert (code, out) == (0, "prep-1: succeeded\nprep-2: succeeded\n")
    assert mpi("run", "--image=i", "--array=1-", "--after=missing", "./a")[0] == 2


def test_the_jobs_of_an_array_are_waited_for_by_the_names_that_submit_prints(mpi: Any, api: FakeApi, tmp_path: Path) -> None:
    script = tmp_path / "cases.sbatch"
    script.write_text(SCRIPT.format("--array=1-9"))
    names = mpi("submit", str(script), "--image=i", "-o", "name")[1].split()
    ends: list[Step] = [is_now(api, name.rpartition("/")[2], "Succeeded") for name in names]
    api.steps = [nothing] * 18 + ends
    code, _, err = mpi("run", "--image=i", "--name=sum", "--detach", *(f"--after={name}" for name in names), "./a")
    assert (code, "sum" in api.stored, " and 4 others\n" in err) == (0, True, True), err


NOT_CONVERTED = "not converted: {}  (nothing in the cluster waits for another job: "


@pytest.mark.parametrize(
    ("dependency", "options", "sentence"),
    [
        ("afterok:350:351", (), f"{NOT_CONVERTED}kubectl mpi submit --after JOB FILE does)"),
        ("afterok:1,afterany:2", (), f"{NOT_CONVERTED}use kubectl mpi wait JOB in a shell)"),
        ("singleton", (), f"{NOT_CONVERTED}use kubectl mpi wait JOB in a shell)"),
        ("afterok:350", ("--after=prep", "--strict"), "note: {}: --after takes its place"),
    ],
)
def test_a_dependency_of_a_script_is_reported_or_replaced(
    mpi: Any, waited: FakeApi, tmp_path: Path, dependency: str, options: Sequence[str], sentence: str
) -> None:
    waited.steps = [nothing, is_now(waited, "prep", "Succeeded")]
    script = tmp_path / "melt.sbatch"
    script.write_text(SCRIPT.format(f"--dependency={dependency}"))
    line = sentence.format(f"#SBATCH --dependency={dependency}")
    code, _, err = mpi("submit", str(script), "--image=i", *options)
    assert (code, line in err.splitlines(), len(created(waited))) == (0, True, 1), err
    if not options:
        assert f"# {line}\n" in mpi("convert", str(script), "--image=i")[1]
        assert mpi("convert", str(script), "--image=i", "--strict")[0] == 2


def test_jobs_of_two_namespaces_have_no_common_job_to_wait_for(mpi: Any, apis: dict[str, FakeApi], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for path in files:
        path.write_text(yaml.safe_dump(stored() | {"metadata": {"name": "pi", "namespace": path.name}, "status": {}}))
    code, _, err = mpi("submit", *map(str, files), "--after=prep")
    sentence = "error: --after: the files have jobs of namespaces a and b: submit those of each by themselves\n"
    assert (code, err, [created(api) for api in apis.values()]) == (2, sentence, [[], []])
