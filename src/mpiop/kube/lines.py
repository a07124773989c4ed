"""From the chunks of a watch to its lines."""

from mpiop.kube.errors import TransportError

LINE_LIMIT_BYTES = 64 * 1024 * 1024
"""Far above what an object can be (etcd refuses 1.5 MiB, JSON and both wrappings included a few times that)."""


class LineSplitter:
    """Cuts a stream of bytes at newlines; what follows the last newline waits for more, and is never a line by itself.

    A line costs time linear in its length however small its chunks are.
    """

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        """Refuse lines longer than `limit_bytes`."""
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without newline, empty ones left out.

        Raises:
            TransportError: A line grows beyond the limit.
        """
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self._length += len(first)
        if self._length > self._limit_bytes:
            raise TransportError(f"a line of the stream has more than {self._limit_bytes} bytes; is this a watch?")
        if not others:
            return []
        lines = [b"".join(self._parts), *others[:-1]]
        self._parts = [others[-1]]
        self._length = len(others[-1])
        return [line for line in lines if line]
