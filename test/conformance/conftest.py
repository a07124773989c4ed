import asyncio

import pytest

from conformance.world import World, run


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return asyncio.run(run(tmp_path_factory.mktemp("conformance")))
