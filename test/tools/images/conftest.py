"""Programs and a console for the tests of hack/images."""

import io
from pathlib import Path

import pytest

from imaging.console import Console
from imaging.process import Programs


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def programs(tmp_path: Path, output: io.StringIO) -> Programs:
    return Programs(Console(output), tmp_path / "logs")
