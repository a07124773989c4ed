"""The client's own promises: no request without a name or a precondition, nothing of the answer lost."""

import pytest

from fakes.api_server import FakeClient
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key
from mpiop.kube.request import Request
from mpiop.kube.resources import JOBS, PODS, Resource, Selection

NAMELESS = Key("default", "")


async def test_a_request_about_an_object_needs_its_name() -> None:
    client = FakeClient()
    with pytest.raises(ValueError, match="whole collection"):
        await client.get(PODS, NAMELESS)
    with pytest.raises(ValueError, match="whole collection"):
        await client.patch(PODS, NAMELESS, {})
    with pytest.raises(ValueError, match="whole collection"):
        await client.update(PODS, {"metadata": {"namespace": "default"}})
    with pytest.raises(ValueError, match="whole collection"):
        await client.delete(PODS, NAMELESS, uid="u")
    assert client.server.requests == []


async def test_E57_a_delete_needs_the_uid() -> None:
    client = FakeClient()
    with pytest.raises(ValueError, match="no uid given"):
        await client.delete(PODS, Key("default", "a"), uid="")
    assert client.server.requests == []


async def test_discovery_passes_other_errors_on() -> None:
    client = FakeClient()
    client.refuse("discover", None, "", StatusError("discover", {"code": 403}))
    with pytest.raises(StatusError) as caught:
        await client.discover("batch", "v1")
    assert caught.value.code == 403


PATHS = [
    (Request("get", PODS, Key("n", "a")), "/api/v1/namespaces/n/pods/a", "get pods n/a"),
    (Request("create", PODS, Key("n", "a")), "/api/v1/namespaces/n/pods", "create pods n/a"),
    (Request("list", PODS, Key("n", "")), "/api/v1/namespaces/n/pods", "list pods n"),
    (Request("list", PODS), "/api/v1/pods", "list pods"),
    (Request("patch", JOBS, Key("n", "a"), "status"), "/apis/batch/v1/namespaces/n/jobs/a/status", "patch jobs/status n/a"),
    (Request("get", PODS, Key("n/../x", "a/b?c")), "/api/v1/namespaces/n%2F..%2Fx/pods/a%2Fb%3Fc", "get pods n/../x/a/b?c"),
    (Request("get", Resource("", "v1", "nodes", "Node", namespaced=False), Key("", "a")), "/api/v1/nodes/a", "get nodes a"),
    (Request("discover", Resource("batch", "v1", "", "", namespaced=False)), "/apis/batch/v1", "discover batch/v1"),
    (Request("discover", Resource("", "v1", "", "", namespaced=False)), "/api/v1", "discover v1"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "path", "text"), PATHS)
def test_paths_and_names_of_requests(request_: Request, path: str, text: str) -> None:
    assert request_.path == path
    assert str(request_) == text


def test_a_selection_reads_well_in_logs() -> None:
    assert str(Selection(PODS)) == "pods"
    assert str(Selection(PODS, "n", "a=b", "c=d")) == "pods in n with a=b, c=d"
