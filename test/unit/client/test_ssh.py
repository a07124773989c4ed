"""Whose ssh a job uses: the user's choice, or what the operator offers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fakes.client_api import FakeApi, container
from mpiop.api.capabilities import Capabilities
from mpiop.client.errors import ClientError, ForbiddenError, InvalidError, NoClusterError, UnauthenticatedError, UnreachableError
from mpiop.client.mpi import MPI

SSH = "mpiop.kubeflow.org/ssh"
PLAIN: dict[str, Any] = {"image": "i", "is_tagged": False}


def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/mpi-operator-capabilities"


def offered(default_ssh: str = "Image", agent_image: str | None = "agent:1") -> dict[str, Any]:
    return {"data": Capabilities.offered("1", default_ssh=default_ssh, agent_image=agent_image).data()}


def annotation(api: FakeApi, **fields: Any) -> str | None:
    """Submit a job and return its annotation."""
    MPI(api=api).submit(["./a"], **PLAIN | fields)
    [job] = [request[1] for request in api.requests if request[0] == "create"]
    return (job["metadata"].get("annotations") or {}).get(SSH)


@pytest.mark.parametrize(
    ("answers", "fields", "expected"),
    [
        pytest.param({"mpi-operator": offered()}, {}, "Injected", id="offered"),
        pytest.param({"kubeflow": offered()}, {}, "Injected", id="offered by an operator that is a part of Kubeflow"),
        pytest.param({"mpi-operator": offered(agent_image=None)}, {}, None, id="the operator decides: nobody named an agent image"),
        pytest.param({"mpi-operator": offered(agent_image="")}, {}, None, id="not offered"),
        pytest.param({}, {}, None, id="an operator that publishes nothing"),
        pytest.param({"mpi-operator": ForbiddenError("no")}, {}, None, id="no right to read it"),
        pytest.param({"team": NoClusterError("off"), "mpi-operator": offered()}, {}, None, id="no answer"),
        pytest.param({"team": UnauthenticatedError("log in"), "mpi-operator": offered()}, {}, None, id="credentials that are not accepted"),
        pytest.param({"team": offered(agent_image=""), "mpi-operator": offered()}, {}, None, id="the operator of the namespace counts"),
        pytest.param({"team": ForbiddenError("no"), "mpi-operator": offered()}, {}, "Injected", id="no right in the namespace"),
        pytest.param({"mpi-operator": offered()}, {"ssh": "image"}, "Image", id="the user wants the image's"),
        pytest.param({"mpi-operator": offered(agent_image=None)}, {"ssh": "injected"}, "Injected", id="the user wants injected ssh"),
        pytest.param({}, {"ssh": "injected"}, "Injected", id="the user wants injected ssh, of an operator that publishes nothing"),
    ],
)
def test_the_user_chooses_else_what_the_operator_offers(answers: dict[str, Any], fields: dict[str, Any], expected: str | None) -> None:
    api = FakeApi()
    api.answers = {path(namespace): answer for namespace, answer in answers.items()}
    assert annotation(api, **fields) == expected


def patch(role: str, **container: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": role.lower(), **container}]}}
    return {"patch": {"spec": {"mpiReplicaSpecs": {role: {"template": template}}}}}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(patch("Worker", command=["/usr/sbin/sshd", "-De"]), id="workers with an sshd of their own"),
        pytest.param(patch("Launcher", volumeMounts=[{"mountPath": "/opt", "name": "v"}]), id="a volume above the agent"),
        pytest.param({"mounts": {"/opt/mpiop": "claim"}}, id="a claim in the place of the agent"),
        pytest.param({"patch": {"metadata": {"annotations": {SSH: None}}}}, id="a patch that removes the annotation"),
        pytest.param({"patch": {"spec": {"mpiReplicaSpecs": None}}}, id="a patch that leaves no job"),
    ],
)
def test_auto_is_not_injected_where_the_job_has_no_room_for_it(fields: dict[str, Any]) -> None:
    api = FakeApi()
    api.answers = {path("mpi-operator"): offered()}
    assert annotation(api, **fields) is None


def test_another_namespace_of_the_operator_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    api.answers = {path("mpi-operator"): offered(agent_image=None), path("operators"): offered()}
    monkeypatch.setenv("MPIOP_OPERATOR_NAMESPACE", "operators")
    assert annotation(api) == "Injected"


def test_injected_ssh_that_the_operator_cannot_do_is_refused_before_anything_is_created() -> None:
    api = FakeApi()
    api.answers = {path("mpi-operator"): offered(agent_image="")}
    with pytest.raises(InvalidError, match=r"^ssh is injected: the operator has no agent image; use --ssh image and an image with sshd"):
        annotation(api, ssh="injected")
    assert api.requests == []


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ClientError, match=r"^ssh is 'Injected': it must be one of auto, image, injected$"):
        annotation(FakeApi(), ssh="Injected")


@pytest.mark.parametrize(("ssh", "command"), [("image", ["/usr/sbin/sshd"]), ("injected", None), ("auto", None)])
def test_workers_of_another_user_run_sshd_of_the_image_only_without_injected_ssh(ssh: str, command: list[str] | None) -> None:
    api = FakeApi()
    api.answers = {path("mpi-operator"): offered()}
    annotation(api, user=1000, ssh=ssh)
    worker = container(api.requests[-1][1], "Worker")
    assert worker.get("command") == command


class Counting(FakeApi):
    """Counts who asks what the operator offers, and in which namespaces."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, path: str) -> Any:
        self.asked.append(path.split("/")[4])
        return super().get(path)


THREE = ["team", "mpi-operator", "kubeflow"]


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        pytest.param({"mpi-operator": offered()}, THREE[:2], id="offered"),
        pytest.param({"mpi-operator": offered(), "team": ForbiddenError("no")}, THREE[:2], id="offered, and no right in the namespace"),
        pytest.param({}, THREE, id="an operator that publishes nothing"),
        pytest.param({"team": UnreachableError("busy")}, THREE[:1] * 3, id="no answer is no answer that counts"),
    ],
)
def test_jobs_of_the_same_minute_ask_once_and_later_ones_again(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], asked: list[str]
) -> None:
    api, now = Counting(), [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    api.answers = {path(namespace): answer for namespace, answer in answers.items()}
    mpi = MPI(api=api)
    for seconds, fields in ((0, {}), (30, {"ssh": "injected"}), (29, {})):
        now[0] += seconds
        mpi.submit(["./a"], **PLAIN | fields, name=f"a{now[0]:.0f}")
    assert api.asked == asked
    api.answers = {path("team"): offered(agent_image="")}
    now[0] += 1
    with pytest.raises(InvalidError, match="no agent image"):
        mpi.submit(["./a"], **PLAIN, ssh="injected")


def test_jobs_that_are_submitted_at_the_same_time_ask_once() -> None:
    api = Counting()
    api.answers = {path("mpi-operator"): offered()}
    mpi, ready = MPI(api=api), threading.Barrier(8)

    def submit(number: int) -> None:
        ready.wait()
        mpi.submit(["./a"], **PLAIN, name=f"a{number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(submit, range(8)))
    assert (api.asked, len(api.stored)) == (THREE[:2], 8)
