"""HTTP/1.1 on asyncio streams, as far as a proxy needs it: heads, bodies, chunks, and connections that end in the way that a test wants."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
# Fields that belong to one connection, and are made again for the next.
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer: its first line, its header fields (names in lower case), and its body where that was read."""

    first_line: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def status(self) -> int:
        return int(self.first_line.split(" ", 2)[1])

    @property
    def is_chunked(self) -> bool:
        return self.fields.get("transfer-encoding", "") == "chunked"

    def head(self, framing: str) -> bytes:
        """Render the head; `framing` is the header line that reports how the body ends."""
        fields = [f"{name}: {value}" for name, value in self.fields.items() if name not in _HOP_BY_HOP]
        return "\r\n".join([self.first_line, *fields, framing, "", ""]).encode("latin-1")

    def rendered(self) -> bytes:
        """Render the whole message, whatever its framing was before."""
        return self.head(f"content-length: {len(self.body)}") + self.body


async def read_head(reader: asyncio.StreamReader, begun: bytes = b"") -> Message:
    """Return the next message without its body; `begun` is what was read of it before.

    Raises:
        asyncio.IncompleteReadError: The connection ended before.
    """
    first_line, *lines = (begun + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    fields = dict[str, str]()
    for name, value in ((name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)):
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return Message(first_line, fields)


async def read_message(reader: asyncio.StreamReader, begun: bytes = b"") -> Message:
    """Return the next message with its body; `begun` is what was read of its head before."""
    head = await read_head(reader, begun)
    return Message(head.first_line, head.fields, await read_body(reader, head))


async def read_body(reader: asyncio.StreamReader, head: Message) -> bytes:
    """Return the body that belongs to `head`."""
    if head.is_chunked:
        return b"".join([chunk async for chunk in chunks(reader)])
    return await reader.readexactly(int(head.fields.get("content-length", "0")))


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the chunks of a body until its end."""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")


def as_chunk(content: bytes) -> bytes:
    """Return `content` as a chunk; an empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(content), content)


def close(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    """End the connection: with RST, or in order with FIN as soon as everything was sent."""
    if not reset:
        writer.close()
        return
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    writer.transport.abort()
