"""Programs that run on the ranks of an allocation as steps (see `Allocation.submit`)."""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypedDict

from mpiop.client.allocation import Launcher, Watch
from mpiop.client.errors import InvalidError, JobFailed
from mpiop.client.job import LOG_LINES, Job
from mpiop.client.steps import Step, Streams, judged
from mpiop.client.tags import RankLines, Tagged
from mpiop.client.type_checks import check_type

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class StepOptions(TypedDict, total=False):
    """The options of `Allocation.submit`."""

    ranks: int | None
    hosts: Sequence[int]
    env: Mapping[str, str] | None
    report: Callable[[str], None] | None


def step_words(command: Sequence[str], ranks: int | None, hosts: Sequence[int], env: Mapping[str, str] | None) -> list[str]:
    """Return the words of the script's `step` that run a program, with tags of ranks.

    Raises:
        InvalidError: One of the values is invalid.
    """
    check_type("ranks", ranks, int | None)
    check_type("command", command, Sequence[str], "a list of words, such as ['./solver', 'input.nml']")
    check_type("hosts", hosts, Sequence[int], "a list of whole numbers")
    check_type("env", env, Mapping[str, str] | None, "names of variables with their values, as strings")
    if not command:
        raise InvalidError("command is []: it must be a list of words, such as ['./solver', 'input.nml']")
    if any("\0" in word for word in (*command, *(env or {}).values())):
        raise InvalidError("command or env has a NUL character, which no program can receive")
    if ranks is not None and ranks < 1:
        raise InvalidError(f"ranks is {ranks}: it must be at least 1")
    if wrong := [host for host in hosts if host < 0]:
        raise InvalidError(f"hosts has {wrong[0]}: hosts are counted from 0")
    if invalid := [name for name in env or {} if not _VARIABLE.fullmatch(name)]:
        raise InvalidError(f"env has {invalid[0]!r}: this is not a valid name of a variable")
    words = [] if ranks is None else ["-n", str(ranks)]
    words += ["--hosts", ",".join(map(str, hosts))] if hosts else []
    for name, value in (env or {}).items():
        words += ["--env", f"{name}={value}"]
    return [*words, "--tag", "--", *command]


class Reports(NamedTuple):
    """Callbacks of the step of a program. Other threads call them.

    Attributes:
        line: Gets each line with its rank, which is None if `mpirun` printed it.
        waits: Gets the reason when the step waits for slots.
    """

    line: Callable[[int | None, str], None]
    waits: Callable[[str], None] = lambda _: None


class ProgramStep:
    """A program that runs on ranks of an allocation."""

    def __init__(self, job: Job, kubectl: Sequence[str], launcher: Launcher, words: Sequence[str], reports: Reports) -> None:
        """Start it; `words` are of `step_words`."""
        self._job, self._watch, self._reports = job, Watch(job, launcher.workers), reports
        self._lines = deque[str](maxlen=LOG_LINES)
        streams = Streams(self._read, self._read, reports.waits, self._watch.lost)
        self._step = Step(kubectl, words, lambda: RankLines(job.library), streams, has_input=False)

    def wait(self) -> str:
        """Wait until the program ends, and return the last 200 lines that its ranks have printed. Ctrl-C ends the ranks.

        If `report` raises, the ranks are ended, and this raises the same.

        Raises:
            JobFailed: The program ended with another exit code than 0, which is `code`, or a worker was lost.
            InvalidError: The step was refused, with the reason.
            ClientError: The connection was lost.
        """
        try:
            end = self._step.wait()
        except BaseException:
            self.end()
            raise
        output = "\n".join(self._lines)
        end = judged(end, output, self._watch.lost)
        if end.code == 0:
            return output
        why = end.why or f"its program ended with exit code {end.code}"
        raise JobFailed(f"{self._job.name}, step {end.number}", "StepFailed", why, end.code, output)

    def end(self) -> None:
        """End the ranks; `wait` then raises `JobFailed` with code 130."""
        self._step.interrupt()

    def _read(self, line: Tagged) -> None:
        text = line.text.decode(errors="replace")
        self._lines.append(text)
        self._reports.line(line.rank, text)
