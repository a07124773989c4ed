"""What the Python client and `kubectl mpi` rely on: their fake answers as their real code does, over HTTP from an API server."""

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from contract_subject import KUBECONFIG, NAMESPACES, install_crd
from fakes.client_api import NOON, FakeApi, pod, stored
from fakes.rest_server import rest_server
from mpiop.api import constants as c
from mpiop.client.api import Api, Object
from mpiop.client.cluster import Cluster
from mpiop.client.errors import ConflictError, NotFoundError
from mpiop.kube.config import load_config
from mpiop.kube.resources import EVENTS, PODS
from mpiop.kube.transport import connect

NUMBERS = itertools.count()


def create(cluster: Cluster, path: str, body: Object) -> None:
    cluster._send("POST", path, "an object of the test", body=body)


@dataclass
class Given:
    """An `Api`, and how others put Pods and Events into its namespace."""

    api: Api

    def pod(self, name: str, job: str) -> None:
        made = pod(name, job=job)
        if isinstance(self.api, FakeApi):
            self.api.all_pods.append(made)
            return
        assert isinstance(self.api, Cluster)
        spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "registry.example.com/none"}]}
        metadata = {"name": name, "labels": {**made["metadata"]["labels"], c.LABEL_OPERATOR_NAME: c.OPERATOR_NAME}}
        create(self.api, PODS.path(self.api.namespace), {"metadata": metadata, "spec": spec})

    def event(self, uid: str) -> None:
        about = {"kind": "MPIJob", "namespace": self.api.namespace, "name": "pi", "uid": uid}
        event = {"metadata": {"name": f"pi.{uid}"}, "involvedObject": about, "reason": "Tested", "lastTimestamp": NOON, "type": "Normal"}
        if isinstance(self.api, FakeApi):
            self.api.all_events.append(event)
            return
        assert isinstance(self.api, Cluster)
        create(self.api, EVENTS.path(self.api.namespace), event)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kubeconfig of an API server in memory that is served over HTTP."""
    file, is_up, loop = tmp_path_factory.mktemp("api") / "kubeconfig", threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with rest_server({}) as (_, http):
            cluster, context = {"name": "c", "cluster": {"server": http.url}}, {"name": "c", "context": {"cluster": "c"}}
            file.write_text(yaml.safe_dump({"current-context": "c", "clusters": [cluster], "contexts": [context]}), encoding="utf-8")
            is_up.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert is_up.wait(30)
    yield str(file)
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.fixture(scope="module")
def real() -> str:
    """The kubeconfig of a real API server, which knows MPIJobs."""

    async def install() -> None:
        client = await connect(load_config(kubeconfig=KUBECONFIG))
        await install_crd(client)
        await client.close()

    asyncio.run(install())
    return KUBECONFIG


@pytest.fixture(params=["fake", "served", *(["real"] if KUBECONFIG else [])])
def given(request: pytest.FixtureRequest) -> Iterator[Given]:
    """An `Api` with a namespace of the test's own."""
    if request.param == "fake":
        yield Given(FakeApi())
        return
    namespace = f"contract-client-{next(NUMBERS)}"
    cluster = Cluster(kubeconfig=request.getfixturevalue(request.param), namespace=namespace)
    if request.param == "served":
        yield Given(cluster)
        return
    create(cluster, NAMESPACES.path(), {"metadata": {"name": namespace}})
    yield Given(cluster)
    cluster._send("DELETE", NAMESPACES.path(name=namespace), "the namespace of the test")


def new(**metadata: Any) -> Object:
    """Return an MPIJob as it is submitted."""
    job = stored()
    return {"apiVersion": job["apiVersion"], "kind": "MPIJob", "metadata": metadata, "spec": job["spec"]}


@pytest.fixture
def api(given: Given) -> Api:
    return given.api


def names(objects: Sequence[Object]) -> list[str]:
    return sorted(found["metadata"]["name"] for found in objects)


def test_a_job_is_read_as_it_was_stored(api: Api) -> None:
    made = api.create_job(new(name="pi", labels={"team": "a"}))
    assert made["metadata"].items() >= {"name": "pi", "namespace": api.namespace, "labels": {"team": "a"}}.items()
    assert made["metadata"]["uid"]
    read = api.job("pi")
    assert (read["metadata"]["uid"], read["spec"]) == (made["metadata"]["uid"], made["spec"])
    assert names(api.jobs()) == ["pi"]
    assert "pi" in names(api.jobs(everywhere=True))


def test_a_name_is_made_from_its_prefix(api: Api) -> None:
    name = api.create_job(new(generateName="pi-"))["metadata"]["name"]
    assert name.startswith("pi-")
    assert len(name) == len("pi-") + 5
    assert names(api.jobs()) == [name]


def test_a_dry_run_stores_nothing(api: Api) -> None:
    assert api.create_job(new(name="pi"), is_dry_run=True)["metadata"]["name"] == "pi"
    assert list(api.jobs()) == []


def test_a_name_that_exists_is_refused(api: Api) -> None:
    api.create_job(new(name="pi"))
    with pytest.raises(ConflictError, match=f"^job {api.namespace}/pi: .*already exists"):
        api.create_job(new(name="pi"))


def test_a_job_of_another_namespace_is_not_found(api: Api) -> None:
    api.create_job(new(name="pi"))
    with pytest.raises(NotFoundError, match=r"^job elsewhere/pi: .*not found"):
        api.within("elsewhere").job("pi")
    with pytest.raises(NotFoundError):
        api.job("other")


def test_a_patch_is_merged_and_null_removes(api: Api) -> None:
    api.create_job(new(name="pi", labels={"a": "1", "b": "2"}))
    patched = api.patch_job("pi", {"metadata": {"labels": {"a": None, "c": "3"}}, "spec": {"runPolicy": {"suspend": True}}})
    assert patched["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert patched["spec"]["runPolicy"]["suspend"] is True
    assert patched["spec"]["slotsPerWorker"] == 1
    with pytest.raises(NotFoundError):
        api.patch_job("other", {"spec": {}})


def test_exactly_the_job_that_is_meant_is_deleted(api: Api) -> None:
    made = api.create_job(new(name="pi"))
    api.delete_job({**made, "metadata": {**made["metadata"], "uid": "of-a-former-job"}})
    assert names(api.jobs()) == ["pi"]
    api.delete_job(made)
    api.delete_job(made)
    assert list(api.jobs()) == []


def test_pods_are_found_by_their_job_and_by_their_names(given: Given) -> None:
    for name, job in (("pi-worker-0", "pi"), ("pi-worker-1", "pi"), ("other-worker-0", "other")):
        given.pod(name, job)
    assert names(given.api.pods("pi")) == ["pi-worker-0", "pi-worker-1"]
    assert given.api.pod("other-worker-0")["metadata"]["name"] == "other-worker-0"
    with pytest.raises(NotFoundError, match=r"^pod .*/pi-worker-2: "):
        given.api.pod("pi-worker-2")


def test_events_are_those_about_an_object(given: Given) -> None:
    for uid in ("a", "b"):
        given.event(uid)
    assert names(given.api.events("a")) == ["pi.a"]
    assert list(given.api.events("c")) == []


def test_a_config_map_is_made_patched_and_deleted(api: Api) -> None:
    made = api.create_config_map({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "files-"}, "data": {"a": "1"}})
    name = made["metadata"]["name"]
    assert name.startswith("files-")
    assert made["data"] == {"a": "1"}
    assert api.patch_config_map(name, {"data": {"b": "2"}})["data"] == {"a": "1", "b": "2"}
    api.delete_config_map(made)
    with pytest.raises(NotFoundError):
        api.delete_config_map(made)
    with pytest.raises(NotFoundError):
        api.patch_config_map(name, {})
