"""R22: a stream on which nothing comes is ended, and no other."""

import asyncio

import pytest
from aiohttp import StreamReader

from mpiop.kube.silence import Silence


class Protocol:
    """What a stream asks of a connection."""

    _reading_paused = False
    connected = True

    def pause_reading(self) -> None:
        """Go on."""

    def resume_reading(self) -> None:
        """Go on."""


def stream() -> StreamReader:
    protocol: object = Protocol()
    return StreamReader(protocol, 2**16, loop=asyncio.get_running_loop())  # type: ignore[arg-type] # a connection is not needed


async def test_R22_silence_ends_the_reading_after_its_time_and_not_before() -> None:
    content, loop = stream(), asyncio.get_running_loop()
    with Silence(content, 150.0) as silence:
        for _ in range(3):
            loop.call_later(100.0, content.feed_data, b"x")
            await content.readany()
            silence.heard()
        with pytest.raises(TimeoutError, match="not a byte for 150 s"):
            await content.readany()
    assert loop.time() == pytest.approx(450.0)


async def test_R22_what_came_and_was_not_read_yet_is_not_silence() -> None:
    content = stream()
    with Silence(content, 150.0):
        asyncio.get_running_loop().call_later(149.0, content.feed_data, b"x")
        await asyncio.sleep(250.0)
        assert await content.readany() == b"x"


async def test_nobody_is_disturbed_afterwards() -> None:
    content = stream()
    with Silence(content, 150.0):
        pass
    await asyncio.sleep(1000.0)
    assert content.exception() is None
