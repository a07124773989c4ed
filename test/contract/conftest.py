"""The contract suite runs against the fake API server always, and against a real one that MPIOP_TEST_KUBECONFIG names."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from contract_subject import CRDS, NAMESPACES, Subject
from fakes.api_server import FakeClient
from mpiop.kube.client import Client
from mpiop.kube.config import load_config
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key
from mpiop.kube.transport import connect
from virtual_time import VirtualTimeLoop

KUBECONFIG = os.environ.get("MPIOP_TEST_KUBECONFIG", "")
CRD = Path(__file__).parents[2] / "manifests" / "base" / "kubeflow.org_mpijobs.yaml"


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
    await _install_crd(client)
    namespace = await client.create(NAMESPACES, {"metadata": {"generateName": "contract-"}})  # type: ignore[typeddict-unknown-key]
    name = namespace["metadata"]["name"]
    yield Subject(client, name, None)
    await client.delete(NAMESPACES, Key("", name), uid=namespace["metadata"]["uid"])
    await client.close()


async def _install_crd(client: Client) -> None:
    crd: dict[str, Any] = yaml.load(CRD.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    try:
        await client.create(CRDS, crd)  # type: ignore[arg-type]
    except StatusError as error:
        if not error.is_already_exists:
            raise
    async with asyncio.timeout(30):
        while "mpijobs" not in await client.discover("kubeflow.org", "v2beta1"):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.1)
