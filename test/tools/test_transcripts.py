"""Which transcripts of a page pass: what may differ from what is shown, and what may not."""

import os
from pathlib import Path

import pytest

from e2e.shell import Shell

RIGHT = {
    "other order, spaces and progress": "$ printf 'running: 1/2 workers\\nb   2\\na 1\\n'\na 1\nb 2",
    "generated names and the Pod that is named": "$ echo pi-launcher-abcde, pod x-y\npi-launcher-fghij, pod z",
    "addresses, times and sizes": "$ echo 10.0.0.1 2h5m 2026-11-28 09:31 7Mi\n10.9.8.7 4s 2025-01-01 10:00:01 12Mi",
    "a line of which a part is left out": "$ echo begin 1 2 3 end\nbegin … end",
    "lines that are left out": "$ seq 5\n2\n…",
    "the name of a job that is used later": "$ echo job pi-0a1b2c\njob pi-dc01ef\n$ echo pi-dc01ef is here\npi-dc01ef is here",
    "a failure that is shown": "$ echo error: none >&2; exit 3\nerror: none",
    "an exit code that is shown": "$ echo ends; exit 3\nends\n$ echo $?\n3",
}
WRONG = {
    "a line that is not printed": "$ echo a\na\nb",
    "a line that is not shown": "$ echo a; echo b\na",
    "another number": "$ echo 0/2 workers\n1/2 workers",
    "a failure that is not shown": "$ echo a; exit 3\na",
}


def replay(folder: Path, transcript: str) -> None:
    page = folder / "page.md"
    page.write_text(f"# Page\n\n```\nno transcript\n```\n\n```console\n{transcript}\n```\n", encoding="utf-8")
    Shell(os.environ, folder).replay(str(page), "Page")


@pytest.mark.parametrize("transcript", RIGHT.values(), ids=RIGHT)
def test_a_transcript_passes(transcript: str, tmp_path: Path) -> None:
    replay(tmp_path, transcript)


@pytest.mark.parametrize("transcript", WRONG.values(), ids=WRONG)
def test_a_transcript_fails(transcript: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        replay(tmp_path, transcript)
