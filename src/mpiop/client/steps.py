"""A step of an allocation: `kubectl exec` runs the script in the launcher, which runs `mpirun`.

The script reports on standard error, in lines with a token of the step, how the step continues and how it ended, because the end of a
connection looks like success to kubectl. On its standard input it gets heartbeats and orders; when they end, it ends the ranks.
"""

import contextlib
import queue
import re
import secrets
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Final, TypeVar

from mpiop.api.log_findings import finding
from mpiop.client.allocation import script_command
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.tags import RankLines, Tagged

_Value = TypeVar("_Value")
HEARTBEAT_SECONDS: Final = 10.0
_LONGEST_LINE: Final = 2**20
_SHOWN: Final = 80
_RUNS: Final = re.compile(r"[0-9]{1,9}(?: +[0-9]{1,9}:[0-9]{1,9})*")
_ENDED: Final = re.compile(r"[0-9]{1,3}(?: .*)?", re.DOTALL)
_LOSSES: Final = frozenset({"WorkerLost", "ConnectionLost"})
_NO_READER: Final = b"exit code 141"
"""How `cat` in the launcher ends if nobody reads its output: the program needs no more input."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Callbacks of a step. If one of the first three raises, the step is ended, and its `wait` raises the same.

    Attributes:
        output: Gets each line of standard output.
        error: Gets each line of standard error.
        waits: Gets the reason when the step waits for slots.
        check: Gets the hosts of the step every ten seconds; returns why it must be ended, or "".
    """

    output: Callable[[Tagged], None]
    error: Callable[[Tagged], None]
    waits: Callable[[str], None]
    check: Callable[[Sequence[int]], str] = field(default=lambda _: "")


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a step ended.

    Attributes:
        number: Number of the step.
        hosts: Its hosts, as numbers of lines of the hostfile.
        code: Exit code of `mpirun`; 128 and the number of the signal if the step was ended.
        why: Why it was ended, or "".
    """

    number: int
    hosts: tuple[int, ...]
    code: int
    why: str


def judged(end: StepEnd, output: str, lost: Callable[[Sequence[int]], str]) -> StepEnd:
    """Return the end of a step, with the worker that it lost; it has then failed, also if `mpirun` of Open MPI 5 returned 0.

    Args:
        end: As the script reported it.
        output: The end of what `mpirun` has printed.
        lost: Returns which worker of these hosts was lost, or "".
    """
    found = finding(output) if end.code or "lost" in output else None
    loss = found.facts if found is not None and found.name in _LOSSES else ""
    if not end.code and not loss:
        return end
    return replace(end, code=end.code or 1, why=end.why or lost(end.hosts) or loss)


class Step:
    """A step that runs; threads read what arrives."""

    def __init__(
        self,
        kubectl: Sequence[str],
        words: Sequence[str],
        rank_lines: Callable[[], RankLines],
        streams: Streams,
        *,
        has_input: bool | bytes,
    ) -> None:
        """Start the program, and threads that read what arrives. Callbacks may be called before this returns.

        Args:
            kubectl: Program and arguments of `kubectl exec --stdin POD --container=NAME`; the command in the Pod follows.
            words: Options of the script's `step`, `--` and the program.
            rank_lines: Makes what removes the tags of ranks from a stream.
            streams: Receives what arrives.
            has_input: Whether rank 0 gets the standard input of this process, or the bytes that it gets instead. Bytes travel ahead of
                the orders, so they need no connection of their own.
        """
        self._kubectl, self._rank_lines, self._streams, self._has_input = kubectl, rank_lines, streams, has_input is True
        self._orders = queue.SimpleQueue[str]()
        content = has_input if isinstance(has_input, bytes) else b""
        self._head = content + b"\nask\n" if content else b""
        self._token = secrets.token_hex(8)
        self._is_over = threading.Event()
        self._refusal = self._end = self._input_problem = self._invalid = ""
        self._failure: Exception | None = None
        self._number, self._hosts = 0, tuple[int, ...]()
        kind = ["--content", str(len(content))] if content else ["--input"] if has_input else []
        command = script_command("step", "--token", self._token, *kind, *words)
        # Ctrl-C reaches this process alone, so that what the ranks print at their end arrives.
        self._process = subprocess.Popen(  # noqa: S603 - kubectl, as the user could call it
            [*self._kubectl, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
        )
        self._readers = [
            threading.Thread(target=target, args=(stream,), daemon=True)
            for target, stream in ((self._read_output, self._process.stdout), (self._read_error, self._process.stderr))
        ]
        others = [threading.Thread(target=target, daemon=True) for target in (self._beat, self._check)]
        for thread in (*self._readers, *others):
            thread.start()

    def interrupt(self) -> None:
        """Ask the step to end its ranks; `wait` then returns."""
        self._orders.put("interrupt")

    def end(self, why: str) -> None:
        """End the step, with a reason."""
        self._orders.put(f"end {' '.join(why.split())}")

    def kill(self) -> None:
        """End the connection; the step then ends its ranks."""
        self._process.kill()

    def wait(self) -> StepEnd:
        """Wait until the step has ended and its output was read.

        Raises:
            InvalidError: The step was refused, with the reason.
            ClientError: The connection was lost, or a report of the script is invalid.
            Exception: What a callback raised.
        """
        code = self._process.wait()
        for thread in self._readers:
            thread.join()
        self._is_over.set()
        self._orders.put("")  # which ends the thread
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # kubectl has ended, and did not read a heartbeat
                    stream.close()
        if self._failure is not None:
            raise self._failure
        if self._invalid:
            raise ClientError(f"the launcher reported {self._invalid[:_SHOWN]!r}, which is not valid; the ranks are ended within a minute")
        if self._refusal:
            raise InvalidError(f"the step was refused: {self._refusal}")
        if not self._end:
            known = f"step {self._number}" if self._number else "the step"
            raise ClientError(f"the connection to {known} was lost (kubectl: exit code {code}); its ranks are ended within a minute")
        ended, _, why = self._end.partition(" ")
        return StepEnd(self._number, self._hosts, 1 if self._input_problem else int(ended), self._input_problem or why)

    def _call(self, callback: Callable[[_Value], None], value: _Value) -> None:
        if self._failure is None:
            try:
                callback(value)
            except Exception as error:  # noqa: BLE001 - of the caller's; what arrives is still to be read
                self._failure = error
                self.interrupt()

    def _beat(self) -> None:
        """Send the content, and then orders; where there is none for a while, an empty line."""
        if (stream := self._process.stdin) is None:
            return
        line = self._head
        with contextlib.suppress(OSError, ValueError):  # kubectl has ended
            while not self._is_over.is_set():
                stream.write(line)
                stream.flush()
                try:
                    line = self._orders.get(timeout=HEARTBEAT_SECONDS).encode() + b"\n"
                except queue.Empty:
                    line = b"\n"

    def _check(self) -> None:
        """Check the hosts, in a thread of its own: the answer may take longer than the step waits for a heartbeat."""
        why = ""
        while not why and not self._is_over.wait(HEARTBEAT_SECONDS):
            why = self._streams.check(self._hosts) if self._number else ""
        if not self._is_over.wait(HEARTBEAT_SECONDS):  # most libraries end by themselves
            self.end(why)

    def _read_output(self, stream: IO[bytes]) -> None:
        lines = self._rank_lines()
        while line := stream.readline(_LONGEST_LINE):
            for found in lines.add(line.removesuffix(b"\n")):
                self._call(self._streams.output, found)
        for found in lines.rest():
            self._call(self._streams.output, found)

    def _read_error(self, stream: IO[bytes]) -> None:
        lines, mark = self._rank_lines(), f"mpiop:{self._token}:".encode()
        while line := stream.readline(_LONGEST_LINE):
            text, is_ours, report = line.removesuffix(b"\n").partition(mark)
            if text or not is_ours:
                for found in lines.add(text):
                    self._call(self._streams.error, found)
            if is_ours and self._take(report.decode(errors="replace")):
                while stream.read(_LONGEST_LINE):  # kubectl's own words about the exit code
                    pass
        for found in lines.rest():
            self._call(self._streams.error, found)

    def _take(self, report: str) -> bool:
        """Handle a report of the script: `runs`, `waits`, `refused` or `ended`, with its values; return whether it is the last one."""
        kind, _, text = report.partition(" ")
        if (kind == "runs" and not _RUNS.fullmatch(text)) or (kind == "ended" and not _ENDED.fullmatch(text)):
            self._invalid = report
            self.kill()
            return True
        if kind == "runs":
            number, *places = text.split()
            self._number, self._hosts = int(number), tuple(int(place.partition(":")[0]) for place in places)
            if self._has_input:
                threading.Thread(target=self._pass_input, daemon=True).start()
        elif kind == "waits":
            self._call(self._streams.waits, text)
        elif kind == "refused":
            self._refusal = text
        elif kind == "ended":
            self._end = text
        return kind in {"refused", "ended"}

    def _pass_input(self) -> None:
        """Pass standard input on through a second `kubectl exec`, because it may be endless."""
        command = [*self._kubectl, "--", *script_command("input", self._token)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)  # noqa: S603 - kubectl
        if done.returncode and _NO_READER not in done.stderr and not self._is_over.is_set():
            problem = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            self._input_problem = f"standard input did not arrive, or only a part of it: {problem}"
            self.end(self._input_problem)
