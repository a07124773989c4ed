"""The log of a container, line by line; it continues when the connection breaks."""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mpiop.client.api import Api, LogOptions
from mpiop.client.errors import NotFoundError, UnreachableError

RETRY_SECONDS: Final = 1.0
MOST_BYTES: Final = 1024 * 1024
"""Of a line; the rest of it is left out. A program that prints no line end must not fill the memory of who follows it."""
FILE_BYTES: Final = 10 * 1024 * 1024
"""A kubelet starts another file by default when a log is so long. A client that follows it may not get the end of the first one."""
_ALL: Final = LogOptions()
_TO_THE_SECOND: Final = len("2026-11-25T12:00:00")


class Line(NamedTuple):
    """A line of a log; `stamp` is the time at which the runtime got it, as text that can be compared."""

    stamp: str
    text: bytes


class Reader:
    """Reads the log of a container in one or more requests, each line once."""

    def __init__(self, api: Api, pod: str, container: str) -> None:
        """Read nothing yet."""
        self._api, self._pod, self._container = api, pod, container
        self._begun = time.monotonic()
        self._last = ""
        self._seen = Counter[Line]()
        self._bytes = 0

    def read(self, options: LogOptions, *, is_last: bool) -> Iterator[Line]:
        """Yield the lines that come after those of the requests before.

        Args:
            options: Of the first request.
            is_last: Whether a last line without its end is one; else it may be cut, and is left for the next request.

        Raises:
            UnreachableError: The connection broke; the next call continues.
            ClientError: The log cannot be read.
        """
        known, last = self._seen.copy(), self._last
        second = last[:_TO_THE_SECOND]
        try:
            for line in _lines(self._api.read_log(self._pod, self._container, self._after_the_last(options)), is_last=is_last):
                if known and known[line] > 0:
                    known[line] -= 1
                elif not second or second <= line.stamp[:_TO_THE_SECOND] < "A":  # a kubelet without the log sends a sentence
                    if line.stamp[:1].isdigit():  # else it is a sentence of the kubelet
                        self._remember(line)
                    if options.follow:
                        self._count(line)
                    yield line
        finally:
            if +known and self._last[:_TO_THE_SECOND] > second:
                warnings.warn(f"pod {self._pod}: lines of its log after {last} are missing: the kubelet rotated it meanwhile", stacklevel=2)

    def _count(self, line: Line) -> None:
        before, self._bytes = self._bytes, self._bytes + len(line.stamp) + len(" stdout F \n") + len(line.text)
        if before <= FILE_BYTES < self._bytes:
            warnings.warn(
                f"pod {self._pod}: its log has more than 10 MiB. The kubelet may rotate it, so lines may be missing", stacklevel=3
            )

    def _after_the_last(self, options: LogOptions) -> LogOptions:
        """Return the options of the next request. The server's clock counts, and it gives the whole second of the last line again."""
        if self._last:
            return replace(options, since_time=self._last, since_seconds=None, tail=None)
        if options.since_seconds is not None:
            return replace(options, since_seconds=options.since_seconds + int(time.monotonic() - self._begun))
        return options

    def _remember(self, line: Line) -> None:
        """Keep the lines since the second of the last one; the stamps of stdout and stderr are not in order."""
        if line.stamp > self._last:
            if line.stamp[:_TO_THE_SECOND] != self._last[:_TO_THE_SECOND]:
                self._seen.clear()
            self._last = line.stamp
        self._seen[line] = self._seen.get(line, 0) + 1  # quicker than += 1


def read_lines(
    api: Api, pod: str, container: str, options: LogOptions = _ALL, *, pause: Callable[[float], None] = time.sleep
) -> Iterator[Line]:
    """Yield the lines of a container's log.

    With `follow` the iterator ends with the container. When the API server cannot be reached, or ends the log before the container has
    ended, it waits, and continues after the last line.

    Raises:
        ClientError: The log cannot be read.
    """
    reader = Reader(api, pod, container)
    if not options.follow:
        yield from reader.read(options, is_last=True)
        return
    is_begun = False
    while True:
        try:
            is_last = not is_running(api.pod(pod), container)
            yield from reader.read(options, is_last=is_last)
        except UnreachableError:
            is_last = False
        except NotFoundError:  # the Pod was deleted
            if is_begun:
                return
            raise
        else:
            is_begun = True
        if is_last:
            return
        pause(RETRY_SECONDS)


def is_running(pod: Mapping[str, Any], container: str) -> bool:
    """Return whether a container of the Pod runs, from the Pod's status."""
    rows = pod.get("status", {}).get("containerStatuses") or ()
    return any(row["name"] == container and "running" in row.get("state", {}) for row in rows)


def _lines(pieces: Iterator[bytes], *, is_last: bool) -> Iterator[Line]:
    line = bytearray()
    for piece in pieces:
        end, *others = piece.split(b"\n")
        line += end[: MOST_BYTES - len(line)]
        if others:
            yield _line(bytes(line))
            line = bytearray(others.pop()[:MOST_BYTES])
            yield from map(_line, others)
    if line and is_last:
        yield _line(bytes(line))


def _line(raw: bytes) -> Line:
    stamp, _, text = raw[:MOST_BYTES].partition(b" ")
    return Line(stamp.decode(errors="replace"), text)
