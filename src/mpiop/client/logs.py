"""The log of a container, line by line, that goes on when the connection breaks."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mpiop.client.api import Api, LogOptions
from mpiop.client.errors import UnreachableError
from mpiop.client.status import time_of

RETRY_SECONDS: Final = 1.0
_OVERLAP_SECONDS: Final = 5
_ALL: Final = LogOptions()


class Line(NamedTuple):
    """A line of a log; `stamp` is the time at which the runtime got it, as text that can be compared."""

    stamp: str
    text: str


def read_lines(
    api: Api, pod: str, container: str, options: LogOptions = _ALL, *, pause: Callable[[float], None] = time.sleep
) -> Iterator[Line]:
    """Yield the lines of a container's log.

    With `follow` the iterator ends with the container. When the API server goes away it waits, and goes on after the last line.

    Raises:
        ClientError: The log cannot be read.
    """
    last = seen_until = ""
    while True:
        try:
            for line in _lines(api.read_log(pod, container, options)):
                if line.stamp > seen_until:  # within a stream the stamps of stdout and stderr are not in order
                    last = max(last, line.stamp)
                    yield line
        except UnreachableError:
            if not options.follow:
                raise
            pause(RETRY_SECONDS)
            seen_until = last
            if (seen := time_of(f"{last[:19]}Z" if last else None)) is not None:
                passed = int((datetime.now(UTC) - seen).total_seconds())
                options = replace(options, since_seconds=passed + _OVERLAP_SECONDS)
        else:
            return


def _lines(pieces: Iterator[bytes]) -> Iterator[Line]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from map(_line, whole)
    if rest:
        yield _line(rest)


def _line(raw: bytes) -> Line:
    stamp, _, text = raw.decode(errors="replace").partition(" ")
    return Line(stamp, text)
