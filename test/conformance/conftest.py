import asyncio

import pytest

from conformance.world import World, run
from demonstration.cluster import is_current_desired


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    if is_current_desired():
        pytest.skip("these jobs have a control plane of their own, whose scheduler is stopped")
    return asyncio.run(run(tmp_path_factory.mktemp("conformance")))
