"""Completion: what a shell may offer next."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes.client_api import FakeApi, stored
from mpiop.client.errors import ForbiddenError, UnreachableError
from mpiop.kubectl.completion import complete_for_kubectl
from mpiop.kubectl.main import COMPLETE_VARIABLE, cli
from mpiop.kubectl.session import Session
from mpiop.kubectl.verbs import VERBS

NO_FILES, FILES = ":4", ":0"
Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> Complete:
    """Return the lines that kubectl gets for a command line, of which the last word is not complete; the last line is its directive."""
    api.stored = {name: stored(name) for name in ("pi", "po", "x")}
    api.answers["/apis/kueue.x-k8s.io"] = {"preferredVersion": {"version": "v1"}}
    api.answers["/apis/kueue.x-k8s.io/v1/namespaces/team/localqueues"] = {
        "items": [{"metadata": {"name": name}} for name in ("big", "small")]
    }

    def completed(line: str) -> list[str]:
        complete_for_kubectl(line.split(" "))
        return capsys.readouterr().out.splitlines()

    return completed


@pytest.mark.parametrize(
    ("line", "words", "directive"),
    [
        pytest.param("re", [f"{verb}\t{VERBS[verb].summary}" for verb in ("resume", "restart")], NO_FILES, id="verbs"),
        pytest.param("logs -n team --context=c p", ["pi", "po"], NO_FILES, id="a job"),
        pytest.param("delete pi p", ["pi", "po"], NO_FILES, id="another job"),
        pytest.param("describe pi ", [], NO_FILES, id="nothing after the only argument"),
        pytest.param("doctor p", [], NO_FILES, id="nothing for a verb without arguments"),
        pytest.param("cp p", ["pi:", "po:"], FILES, id="a job to copy from, or a file"),
        pytest.param("run --ssh ", ["auto", "image", "injected"], NO_FILES, id="values"),
        pytest.param("run -n 2 --ssh=i", ["image", "injected"], NO_FILES, id="values behind ="),
        pytest.param("convert --mpi ", ["openmpi", "intel", "mpich"], NO_FILES, id="libraries"),
        pytest.param("list -o ", ["wide", "json", "yaml", "name"], NO_FILES, id="formats"),
        pytest.param("run --queue b", ["big"], NO_FILES, id="queues"),
        pytest.param("run --after p", ["pi", "po"], NO_FILES, id="a job to wait for"),
        pytest.param("submit --after=mpijob", [], NO_FILES, id="no such job to wait for"),
        pytest.param("submit ", [], FILES, id="manifests"),
        pytest.param("submit a.yaml b", [], FILES, id="more manifests"),
        pytest.param("convert ", [], FILES, id="scripts"),
        pytest.param("run --patch ", [], FILES, id="patches"),
        pytest.param("run --upload ", [], FILES, id="folders"),
        pytest.param("list --kubeconfig ", [], FILES, id="kubeconfigs"),
        pytest.param("run -n 2 ./a --s", [], NO_FILES, id="no option of ours after the program"),
        pytest.param("run -- ./a --ssh ", [], NO_FILES, id="no value of ours after the program"),
        pytest.param("exec pi -- cat --w", [], NO_FILES, id="no option of ours after a command"),
    ],
)
def test_what_may_come_next(line: str, words: list[str], directive: str, complete: Complete) -> None:
    assert complete(line) == [*words, directive]
    assert cli.commands == {}


def test_options_are_completed_with_their_help(complete: Complete) -> None:
    found, directive = complete("submit --dr")
    assert (found, directive) == ("--dry-run\tCheck the jobs, and create nothing.", NO_FILES)


def test_a_cluster_that_does_not_answer_or_refuses_is_no_error(complete: Complete, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answers["/apis/kueue.x-k8s.io"] = ForbiddenError("no")
    assert complete("run --queue ") == [NO_FILES]

    def away(_session: Session) -> Any:
        raise UnreachableError("no answer")

    monkeypatch.setattr(Session, "api", away)
    assert complete("logs p") == complete("run --queue ") == [NO_FILES]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(mpi: Any, shell: str) -> None:
    code, out, _ = mpi("completion", shell)
    assert (code, "_MPIOP_KUBECTL_COMPLETE" in out) == (0, True)


def test_the_script_s_question_is_answered(mpi: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in ((COMPLETE_VARIABLE, "bash_complete"), ("COMP_WORDS", "mpiop-kubectl time"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        mpi()
    assert capsys.readouterr().out == "plain,timeline\n"
