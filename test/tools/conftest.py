"""Tests of tools run in virtual time, as unit tests do, with programs that the test writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

import virtual_time
from fakes.programs import executable

pytest_asyncio_loop_factories = virtual_time.pytest_asyncio_loop_factories


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a function that puts a shell script on an otherwise empty PATH, and gives the file that it may write into ($CALLS)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    calls = tmp_path / "calls"
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CALLS", str(calls))

    def put(name: str, body: str) -> Path:
        executable(folder / name, f"#!/bin/sh\n{body}\n")
        return calls

    return put
