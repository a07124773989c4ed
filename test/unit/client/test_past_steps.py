"""The list of the steps of an allocation, as its launcher prints it; a script stands in for kubectl."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpiop.client.errors import ClientError
from mpiop.client.past_steps import PastStep, past_steps

pytestmark = pytest.mark.real_time


def steps(folder: Path, *rows: str) -> list[PastStep]:
    kubectl, listed = folder / "kubectl", folder / "listed"
    listed.write_text("".join(f"{row}\n" for row in rows))
    kubectl.write_text(f"#!/bin/sh\ncat {listed}\nprintf '\\nend\\n'\n")
    kubectl.chmod(0o755)
    return list(past_steps([str(kubectl)]))


def test_a_step_is_read_whole(tmp_path: Path) -> None:
    [ended, runs] = steps(tmp_path, "1\t3\t60\t61\t4\t0:2 1:2\t./a\tb", "2\t\t60\t\t1\t1:1\thostname")
    begin, end = datetime.fromtimestamp(60, UTC), datetime.fromtimestamp(61, UTC)
    assert ended == PastStep(1, 3, begin, end, 4, (0, 1), "./a\tb")
    assert runs == PastStep(2, None, begin, None, 1, (1,), "hostname")


@pytest.mark.parametrize("row", ["x", "1\t3", f"{'9' * 5000}\t3\t60\t61\t4\t0:2\ta", f"1\t3\t{'9' * 30}\t61\t4\t0:2\ta"])
def test_a_list_that_a_program_has_changed_is_an_error(tmp_path: Path, row: str) -> None:
    with pytest.raises(ClientError, match="the launcher's list of steps is invalid"):
        steps(tmp_path, row)
