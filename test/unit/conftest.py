"""Unit tests run in virtual time; those that need sockets or subprocesses are marked `real_time`."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import hypothesis
import pytest
import structlog

from virtual_time import VirtualTimeLoop

# How long an example takes says how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_time: run on an ordinary event loop, for tests with sockets, signals or subprocesses")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Choose the event loop of a test (a hook of pytest-asyncio)."""
    if item.get_closest_marker("real_time"):
        return {"real_time": asyncio.SelectorEventLoop}
    return {"virtual_time": VirtualTimeLoop}


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undo what a test configured of the process's logs, which others capture."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
