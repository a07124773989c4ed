"""What comes from files and from objects is never a traceback, and never moves the terminal."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fakes.client_api import FakeApi, container, pod, stored
from mpiop.kubectl import run, screen
from mpiop.kubectl.main import main
from mpiop.kubectl.verbs import VERBS

BELL = "\x1b]0;title\x07\x9b31m"
SAFE = "\ufffd]0;title\ufffd\ufffd31m"


def spoiled(api: FakeApi) -> None:
    """Store a job with control characters in all its texts."""
    job = stored(state="Running", attempts=[{"number": 1, "pod": f"x{BELL}", "reason": BELL, "startTime": "2026-11-25T12:00:00Z"}])
    job["status"]["attempts"][0]["endTime"] = "2026-11-25T12:00:09Z"
    job["status"]["summary"] |= {"state": BELL, "workers": f"2/2{BELL}", "message": BELL}
    degraded = {"type": "Degraded", "status": "True", "reason": "Lost", "message": f"[/opt]{BELL}\n\rsecond\ttab"}
    job["status"]["conditions"].append(degraded)
    job["status"]["startTime"] = "2026-11-25T12:00:00Z"
    container(job)["image"] = f"i{BELL}\r\n"
    api.stored["pi"], api.all_pods = job, [pod("pi-worker-1")]
    api.answers["/api/v1/namespaces/team/events"] = {"items": []}


@pytest.mark.parametrize("verb", [("list", "-o", "wide"), ("describe", "pi"), ("why", "pi"), ("timeline", "pi")])
def test_control_characters_of_objects_are_not_printed(mpi: Any, api: FakeApi, verb: tuple[str, ...]) -> None:
    spoiled(api)
    code, out, _ = mpi(*verb)
    assert (code, SAFE in out) == (0, True)
    assert [character for character in out if (ord(character) < 32 and character != "\n") or 127 <= ord(character) < 160] == []


def test_a_message_with_line_breaks_stays_in_its_row(mpi: Any, api: FakeApi) -> None:
    spoiled(api)
    assert len(mpi("list", "-o", "wide")[1].splitlines()) == 2
    assert "\n\ufffdsecond tab" in mpi("why", "pi")[1]


def test_run_shows_progress_without_control_characters(mpi: Any, api: FakeApi) -> None:
    spoiled(api)
    wanted, api.all_pods = api.stored.pop("pi"), []
    api.steps = [lambda: api.stored.update(pi=wanted), api.stored.clear]
    err = mpi("run", "--image", "i", "--name", "pi", "--", "./a")[2]
    assert (f"Lost: [/opt]{SAFE}" in err, "\x1b" in err) == (True, False)


def test_brackets_in_a_message_are_shown_on_a_terminal(mpi: Any, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, width=200, markup=False)

    def opened(*, stderr: bool = False) -> Console:
        del stderr
        return terminal

    for module in (screen, run):
        monkeypatch.setattr(module, "console", opened)
    job = stored(state="Running")
    job["status"]["conditions"].append({"type": "Stalled", "status": "True", "reason": "Lost", "message": "[/opt/app] missing"})

    def stall() -> None:
        api.stored["pi"] = job

    def shown() -> None:
        terminal.print("end")
        api.stored.clear()

    api.steps = [stall, shown]
    job["metadata"]["uid"] = "uid-pi"
    code = mpi("run", "--image", "i", "--name", "pi", "--", "./a")[0]
    assert (code, "Lost: [/opt/app] missing" in written.getvalue()) == (1, True)


@pytest.mark.parametrize("verb", [("submit",), ("convert", "--image", "i")])
@pytest.mark.parametrize("is_file", [True, False])
def test_a_text_that_is_not_utf_8_is_a_sentence(
    mpi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...], *, is_file: bool
) -> None:
    (tmp_path / "file").write_bytes(b"#\n# caf\xe9\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"#\n# caf\xe9\n"), encoding="utf-8"))
    name = str(tmp_path / "file") if is_file else "-"
    assert mpi(*verb, name) == (2, "", f"error: {name}:2: not valid UTF-8\n")


@pytest.mark.parametrize("verb", ["--help", *VERBS])
def test_help_works_in_a_pipe_of_latin_1(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"] if verb in VERBS else [verb])
    assert ended.value.code == 0
