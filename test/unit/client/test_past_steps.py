"""The list of the steps of an allocation, as its launcher prints it; a script stands in for kubectl."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.programs import executable
from mpiop.api.mpi_implementations import OPEN_MPI
from mpiop.client.errors import ClientError
from mpiop.client.past_steps import PastStep, past_steps, step_output

pytestmark = pytest.mark.real_time
MARK = 'while [ "$1" != client ]; do shift; done; mark=$2'


def kubectl(folder: Path, body: str) -> list[str]:
    """Let a script stand in for kubectl; return its words."""
    return [str(executable(folder / "kubectl", f"#!/bin/sh\n{body}\n"))]


def steps(folder: Path, *rows: str) -> list[PastStep]:
    listed = folder / "listed"
    listed.write_text("".join(f"{row}\n" for row in rows))
    return list(past_steps(kubectl(folder, f"{MARK}\ncat {listed}\nprintf '\\n%s end\\n' $mark")))


def test_a_step_is_read_whole(tmp_path: Path) -> None:
    [ended, runs] = steps(tmp_path, "1\t3\t60\t61\t4\t0:2 1:2\t./a\tb", "2\t\t60\t\t1\t1:1\thostname")
    begin, end = datetime.fromtimestamp(60, UTC), datetime.fromtimestamp(61, UTC)
    assert ended == PastStep(1, 3, begin, end, 4, (0, 1), "./a\tb")
    assert runs == PastStep(2, None, begin, None, 1, (1,), "hostname")


@pytest.mark.parametrize("row", ["x", "1\t3", f"{'9' * 5000}\t3\t60\t61\t4\t0:2\ta", f"1\t3\t{'9' * 30}\t61\t4\t0:2\ta"])
def test_a_list_that_a_program_has_changed_is_an_error(tmp_path: Path, row: str) -> None:
    with pytest.raises(ClientError, match="the launcher's list of steps is invalid"):
        steps(tmp_path, row)


OUTPUTS = [
    ("0\\n\\nMARK end\\n", []),
    ("0\\na\\n\\nMARK end\\n", [b"a"]),
    ("0\\na\\nMARK end\\n", [b"a"]),
    ("0\\n\\na\\n\\n\\nMARK end\\n", [b"", b"a", b""]),
    ("0\\nend\\nx MARK end\\n\\nMARK end\\n", [b"end", b"x MARK end"]),
    ("0\\n\\nMARK dropped\\nb\\n\\nMARK dropped\\n\\nMARK end\\n", [b"DROPPED", b"b", b"DROPPED"]),
    ("1\\n[1,0]<stdout>:a[1,1]<stdout>:b\\n\\nMARK dropped\\n[1,0]<stdout>:c\\n\\nMARK end\\n", [b"b", b"a", b"DROPPED", b"c"]),
]


@pytest.mark.parametrize(("printed", "expected"), OUTPUTS, ids=[printed for printed, _ in OUTPUTS])
def test_marks_of_the_script_are_not_of_the_output(tmp_path: Path, printed: str, expected: list[bytes]) -> None:
    program, lines = kubectl(tmp_path, f"{MARK}\nprintf '{printed}' | sed s/MARK/$mark/"), list[bytes]()
    for line in step_output(program, 1, OPEN_MPI, lambda: lines.append(b"DROPPED")):
        lines.append(re.sub(rb"[0-9a-f]{16}", b"MARK", line.text))
    assert lines == expected


def test_a_connection_that_is_lost_while_a_step_is_followed_is_an_error(tmp_path: Path) -> None:
    program = kubectl(tmp_path, "printf '0\\na\\nhal'\necho 'error: broken' >&2")
    output = step_output(program, 1, OPEN_MPI, pytest.fail, follow=True)
    assert next(output).text == b"a"
    with pytest.raises(ClientError, match=r"^the launcher does not answer \(kubectl: exit code 0\): error: broken$"):
        assert list(output)


def test_heartbeats_are_sent_while_a_step_is_followed_and_its_connection_ends_with_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpiop.client.past_steps.HEARTBEAT_SECONDS", 0.05)
    program = kubectl(tmp_path, "echo 0\nwhile read -r line; do echo beat; done")
    output = step_output(program, 1, OPEN_MPI, pytest.fail, follow=True)
    assert [next(output).text, next(output).text] == [b"beat", b"beat"]
    output.close()
