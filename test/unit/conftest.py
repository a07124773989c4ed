"""Unit tests run in virtual time; those that need sockets or subprocesses are marked `real_time`."""

import logging
from collections.abc import Iterator

import hypothesis
import pytest
import structlog

import virtual_time
from fakes.certificates import Authority

# How long an example takes reports how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")

pytest_asyncio_loop_factories = virtual_time.pytest_asyncio_loop_factories


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undo what a test configured of the process's logs, which others capture."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
