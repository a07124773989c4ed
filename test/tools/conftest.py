"""Tests of tools run in virtual time, as unit tests do."""

import virtual_time

pytest_asyncio_loop_factories = virtual_time.pytest_asyncio_loop_factories
