"""The contract suite runs against the fake API server always, and against a real one that MPIOP_TEST_KUBECONFIG names."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from contract_subject import KUBECONFIG, NAMESPACES, Subject, install_crd
from fakes.api_server import FakeClient
from mpiop.kube.config import load_config
from mpiop.kube.objects import Key
from mpiop.kube.transport import connect
from virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each test once for each server that there is; against the fake, time is virtual."""
    del item
    real = {"real": asyncio.SelectorEventLoop} if KUBECONFIG else {}
    return {"fake": VirtualTimeLoop, **real}


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    """A client with a namespace of the test's own."""
    if isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
        fake = FakeClient()
        yield Subject(fake, "default", fake)
        return
    client = await connect(load_config(kubeconfig=KUBECONFIG))
    await install_crd(client)
    namespace = await client.create(NAMESPACES, {"metadata": {"generateName": "contract-"}})  # type: ignore[typeddict-unknown-key]
    name = namespace["metadata"]["name"]
    yield Subject(client, name, None)
    await client.delete(NAMESPACES, Key("", name), uid=namespace["metadata"]["uid"])
    await client.close()
