"""A transport to nowhere, for connections whose other side is the test."""

import asyncio

from mpiop.kube.http1 import Connection


class Line(asyncio.Transport):
    """Carries `protocol`; keeps what it sends, and notes what it asks for."""

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.sent = b""
        self.is_paused = self.is_aborted = False
        protocol.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep it."""
        self.sent += data

    def pause_reading(self) -> None:
        """Note it."""
        self.is_paused = True

    def resume_reading(self) -> None:
        """Note it."""
        self.is_paused = False

    def abort(self) -> None:
        """End the connection, once."""
        if not self.is_aborted:
            self.is_aborted = True
            self.protocol.connection_lost(None)


def connected() -> Connection:
    """Return a connection over such a transport."""
    connection = Connection()
    Line(connection)
    return connection
