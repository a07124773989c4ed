"""`submit`: in which namespace, and from which files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi
from mpiop.client.api import Object
from mpiop.client.errors import ClientError, ForbiddenError, UnreachableError
from mpiop.kubectl.session import Session

JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
  namespace: other
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: a
"""


@pytest.fixture
def apis(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeApi]:
    """An API server for each namespace that a verb works in; the context's is team."""
    made: dict[str, FakeApi] = {}

    def connect(session: Session) -> FakeApi:
        namespace = session.namespace or "team"
        made.setdefault(namespace, FakeApi()).namespace = namespace
        return made[namespace]

    monkeypatch.setattr(Session, "api", connect)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "job.yaml"
    found.write_text(JOB)
    return found


@pytest.mark.parametrize("options", [(), ("-n", "other")])
def test_a_job_is_checked_created_and_followed_in_the_namespace_of_its_file(
    mpi: Any, apis: dict[str, FakeApi], file: Path, options: tuple[str, ...]
) -> None:
    for namespace in ("other", "team"):
        Session(namespace).api()
        apis[namespace].steps = [apis[namespace].stored.clear]
    code, out, err = mpi("submit", "-f", str(file), *options)
    assert (code, out) == (1, "job pi created\n")
    assert "somebody deleted it before it ended" in err
    assert [request[0] for request in apis["other"].requests] == ["create", "check", "create"]
    assert not [fake for namespace, fake in apis.items() if namespace != "other" and fake.requests]


def test_a_file_without_a_namespace_takes_that_of_the_option(mpi: Any, apis: dict[str, FakeApi], file: Path) -> None:
    file.write_text(JOB.replace("  namespace: other\n", ""))
    assert mpi("submit", "-n", "mine", str(file))[0] == 0
    assert list(apis["mine"].stored) == ["pi"]


@pytest.mark.parametrize(
    ("namespace", "sentence"),
    [("other", "metadata.namespace is other, and --namespace is mine: say one of them"), ("5", "metadata.namespace must be a text")],
)
@pytest.mark.parametrize("options", [(), ("--dry-run", "client")])
def test_two_namespaces_are_refused(
    mpi: Any, apis: dict[str, FakeApi], file: Path, namespace: str, sentence: str, options: tuple[str, ...]
) -> None:
    file.write_text(JOB.replace("other", namespace))
    assert mpi("submit", "-n", "mine", str(file), *options) == (2, "", f"error: {file}:5: {sentence}\n")
    assert apis == {}


@pytest.mark.parametrize(
    ("failing", "error", "end"),
    [
        ("two", ForbiddenError("denied"), "denied; created before that: pi"),
        ("pi", ForbiddenError("denied"), "denied; created before that: none"),
        ("two", UnreachableError("no answer"), "no answer; the job may exist all the same: kubectl mpi list; created before that: pi"),
        ("pi", UnreachableError("no answer"), "no answer; the job may exist all the same: kubectl mpi list"),
    ],
)
def test_what_was_created_before_an_error_is_said(mpi: Any, api: FakeApi, file: Path, failing: str, error: ClientError, end: str) -> None:
    text = JOB.replace("  namespace: other\n", "")
    file.write_text(text + "---\n" + text.replace("name: pi", "name: two"))
    create = api.create_job

    def created(job: Object, *, is_dry_run: bool = False) -> Object:
        if job["metadata"]["name"] == failing and not is_dry_run:
            raise error
        return create(job, is_dry_run=is_dry_run)

    api.create_job = created  # type: ignore[method-assign]
    assert mpi("submit", str(file))[2] == f"error: {end}\n"


@pytest.mark.parametrize(
    ("text", "line", "key", "first"),
    [
        (JOB + "kind: MPIJob\n", 13, "kind", 2),
        (JOB.replace("  name: pi\n", "  name: pi\n  name: e\n"), 5, "name", 4),
        (JOB + "            image: a\n            image: b\n", 14, "image", 13),
        (JOB + "---\n" + JOB + "kind: MPIJob\n", 26, "kind", 15),
    ],
)
def test_a_key_that_is_given_twice_is_refused_with_its_line(
    mpi: Any, api: FakeApi, file: Path, text: str, line: int, key: str, first: int
) -> None:
    file.write_text(text)
    code, _, err = mpi("submit", str(file))
    sentence = f"{key} is given twice, first in line {first}: remove one of them"
    assert (code, err, api.requests) == (2, f"error: {file}:{line}: {sentence}\n", [])


def test_an_anchor_that_is_used_twice_is_no_mistake(mpi: Any, apis: dict[str, FakeApi], file: Path) -> None:
    file.write_text(JOB.replace("Launcher:", "Launcher: &pods") + "    Worker: *pods\n---\n---\n")
    assert mpi("submit", str(file))[0] == 0
    assert list(apis["other"].stored["pi"]["spec"]["mpiReplicaSpecs"]) == ["Launcher", "Worker"]


@pytest.mark.parametrize("options", [(), ("--dry-run=client",), ("--dry-run=server",)])
def test_jobs_are_printed_as_kubectl_prints_them(mpi: Any, apis: dict[str, FakeApi], file: Path, options: tuple[str, ...]) -> None:
    assert mpi("submit", str(file), *options, "-o", "name")[1] == "mpijob.kubeflow.org/pi\n"
    assert json.loads(mpi("submit", str(file), "--dry-run=client", "-o", "json")[1])["kind"] == "MPIJob"
    file.write_text(JOB + "---\n" + JOB.replace("name: pi", "name: e"))
    assert "pi" in apis["other"].stored if not options else not apis.get("other", FakeApi()).stored
    apis.clear()
    found = list(yaml.safe_load_all(mpi("submit", str(file), *options, "-o", "yaml")[1]))
    assert [job["metadata"]["name"] for job in found] == ["pi", "e"]
