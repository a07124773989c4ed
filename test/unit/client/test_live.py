"""Progress in a notebook and elsewhere."""

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from mpiop.client import Live


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory) -> Iterator[None]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    yield
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("notebook")
def test_in_a_notebook_a_line_takes_the_place_of_the_one_before() -> None:
    with capture_output() as captured:
        show = Live()
        show("scheduling: 1/2 workers have a node")
        show("running: 2/2 workers")
    first, second = captured.outputs
    assert (str(first.data["text/plain"]), first.update) == ("scheduling: 1/2 workers have a node", False)
    assert (str(second.data["text/plain"]), second.update) == ("running: 2/2 workers", True)
    assert first.transient == second.transient


def test_elsewhere_each_line_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show = Live()
    show("running: 1/2 workers")
    show("running: 2/2 workers")
    assert capsys.readouterr().out == "running: 1/2 workers\nrunning: 2/2 workers\n"
