"""Defaults of options from the user's file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi, container, stored
from mpiop.kubectl.completion import complete_for_kubectl
from mpiop.kubectl.session import Session

SCRIPT = "#!/bin/bash\nsrun ./a\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file where it is by default."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("MPIOP_CONFIG", "MPIOP_IMAGE", "MPIOP_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "mpiop").mkdir()
    path = tmp_path / "mpiop/config.yaml"
    path.write_text("image: solver:1\nqueue: gpus\nnamespace: physics\n")
    return path


@pytest.fixture
def namespaces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In which namespaces the verb of a test works; "" is that of the context."""
    found: list[str] = []

    def connect(session: Session) -> FakeApi:
        found.append(session.namespace)
        return FakeApi()

    monkeypatch.setattr(Session, "api", connect)
    return found


def made(mpi: Any, *options: str) -> tuple[str, str]:
    """Return image and queue of a job."""
    job = yaml.safe_load(mpi("run", *options, "--dry-run=client", "--", "./a")[1])
    return container(job)["image"], job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]


def test_an_option_wins_over_the_environment_and_that_over_the_file(mpi: Any, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.exists()
    assert made(mpi) == ("solver:1", "gpus")
    monkeypatch.setenv("MPIOP_IMAGE", "solver:2")
    monkeypatch.setenv("MPIOP_QUEUE", "cpus")
    assert made(mpi) == ("solver:2", "cpus")
    assert made(mpi, "--image=solver:3", "--queue=few") == ("solver:3", "few")


def test_each_verb_works_in_the_namespace_of_the_file(mpi: Any, config: Path, namespaces: list[str]) -> None:
    script, job = config.parent / "a.sbatch", config.parent / "a.yaml"
    script.write_text(SCRIPT)
    job.write_text(yaml.safe_dump(stored() | {"metadata": {"name": "pi", "namespace": "team"}}))
    for words, expected in (
        (("list",), {"physics"}),
        (("list", "-n", "other"), {"other"}),
        (("submit", "--dry-run=server", str(script)), {"physics"}),
        (("submit", "--dry-run=server", str(job)), {"team"}),
    ):
        namespaces.clear()
        assert (mpi(*words)[0], set(namespaces)) == (0, expected), words
    assert "metadata.namespace is team, and --namespace is other" in mpi("submit", "-n", "other", str(job))[2]


def test_another_file_is_named_by_a_variable_and_must_exist(mpi: Any, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = config.with_name("other")
    monkeypatch.setenv("MPIOP_CONFIG", str(other))
    assert mpi("list") == (2, "", f"error: {other}: No such file or directory\n")
    other.write_text("image: solver:9\nqueue: q\n")
    assert made(mpi) == ("solver:9", "q")


@pytest.mark.parametrize("text", ["imgae: a\n", "image: 5\n", "- image\n", "text", "image: {\n"])
def test_a_mistake_in_the_file_is_a_sentence_and_no_obstacle_to_completion(
    mpi: Any, config: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    config.write_text(text)
    code, out, err = mpi("list")
    assert (code, out, err.startswith(f"error: {config}: "), len(err.splitlines())) == (2, "", True, 1)
    assert mpi("--help")[0] == 0
    complete_for_kubectl(["l"])
    assert "list" in capsys.readouterr().out


def test_an_empty_file_sets_nothing(mpi: Any, config: Path) -> None:
    config.write_text("# nothing\n")
    assert mpi("run", "--dry-run=client", "./a")[2].startswith("error: there is no image")
