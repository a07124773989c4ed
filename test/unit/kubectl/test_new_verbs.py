"""`wait`, `history`, `nodes` and `version`: what users type and see."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import NOON, FakeApi, raises, stored
from fakes.http_server import Exchange, http_server
from kubeconfig_cases import kubeconfig
from mpiop import __version__
from mpiop.client.errors import ForbiddenError, UnreachableError
from mpiop.kubectl.main import run
from mpiop.kubectl.nodes import pod_requests


def ended(name: str, code: int, *, at: str = NOON) -> dict[str, Any]:
    """Return a job that ended with this code of its program; a failed one in its second attempt."""
    state = "Failed" if code else "Succeeded"
    job = stored(name, state=state, startTime="2026-11-25T11:58:00Z", completionTime=at)
    if code:
        row = {"number": 2, "pod": f"{name}-launcher", "node": "n", "exitCode": code, "reason": "Error", "endTime": NOON}
        job["status"]["attempts"] = [row]
        job["status"]["summary"] |= {"attempts": "2", "message": "rank 3 crashed\nmore"}
    return job


@pytest.mark.parametrize(
    ("codes", "expected"), [((0,), 0), ((7,), 7), ((0, 9, 7), 9), ((0, 0), 0)], ids=["succeeds", "fails", "first that fails", "all"]
)
def test_wait_returns_the_exit_code_of_the_program(mpi: Any, api: FakeApi, codes: tuple[int, ...], expected: int) -> None:
    jobs = [ended(f"j{index}", code) for index, code in enumerate(codes)]
    api.stored = {job["metadata"]["name"]: stored(job["metadata"]["name"], state="Running") for job in jobs}

    def end() -> None:
        api.stored |= {job["metadata"]["name"]: job for job in jobs}

    api.steps = [lambda: None] * len(jobs) * 2 + [raises(UnreachableError("no answer")), end]
    code, out, err = mpi("wait", *api.stored)
    assert (code, err) == (expected, "")
    assert sorted(line.split(":")[0] for line in out.splitlines()) == [
        f"job j{index} {'failed' if code else 'succeeded'}" for index, code in enumerate(codes)
    ]


def test_wait_gives_up_after_its_timeout_and_reports_a_deletion(mpi: Any, api: FakeApi) -> None:
    api.stored = {"pi": stored(state="Running"), "done": ended("done", 0)}
    assert mpi("wait", "done", "pi", "--timeout", "0s") == (124, "job done succeeded\n", "error: after 0s, not ended yet: pi (Running)\n")
    api.steps = [lambda: None, api.stored.clear]
    assert mpi("wait", "pi") == (3, "", "job pi was deleted before it ended\n")


def test_history_lists_what_ended_in_its_order(mpi: Any, api: FakeApi) -> None:
    assert mpi("history") == (0, "", "No ended MPIJobs found in namespace team.\n")
    jobs = [ended("late", 7, at="2026-11-25T12:30:00Z"), ended("early", 0), stored("runs", state="Running")]
    api.stored = {job["metadata"]["name"]: job for job in jobs}
    head, *rows = (line.split() for line in mpi("history")[1].splitlines())
    assert head == ["NAME", "STATE", "EXIT", "ATTEMPTS", "RESTARTS", "DURATION", "ENDED", "CAUSE"]
    assert [row[:6] for row in rows] == [["early", "Succeeded", "0", "1", "0", "2m"], ["late", "Failed", "7", "2", "0", "32m"]]
    assert rows[1][-3:] == ["rank", "3", "crashed"]
    assert mpi("history", "-A")[1].splitlines()[1].split()[:2] == ["team", "early"]


def node(name: str, **allocatable: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "spec": {}, "status": {"conditions": conditions, "allocatable": allocatable}}


def requests(**quantities: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": quantities}}


def test_nodes_shows_what_is_free(mpi: Any, api: FakeApi) -> None:
    gpu = {"nvidia.com/gpu": "4"}
    tainted = node("b", cpu="8", memory="16Gi", pods="110", **gpu)
    tainted["spec"] = {
        "unschedulable": True,
        "taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "x", "effect": "PreferNoSchedule"}],
    }
    api.answers["/api/v1/nodes"] = {"items": [tainted, node("a", cpu="4", memory="8Gi", pods="10")]}
    pods = [
        {"spec": {"nodeName": "b", "containers": [requests(cpu="1500m", memory="4Gi", **{"nvidia.com/gpu": "1"})]}},
        {"spec": {"nodeName": "a", "containers": [requests(cpu="100m"), {"name": "none"}]}},
        {"spec": {"containers": [requests(cpu="64")]}},
    ]
    api.answers["/api/v1/pods"] = {"items": pods}
    code, out, err = mpi("nodes")
    assert [line.split() for line in out.splitlines()] == [
        ["NODE", "STATE", "CPU", "MEMORY", "NVIDIA.COM/GPU", "PODS"],
        ["a", "Ready", "3.9/4", "8.0Gi/8.0Gi", "0/0", "9/10"],
        ["b", "Ready,SchedulingDisabled,taint:gpu", "6.5/8", "12.0Gi/16.0Gi", "3/4", "109/110"],
    ]
    assert (code, err) == (0, "")


def test_nodes_reports_what_the_user_may_not_see(mpi: Any, api: FakeApi) -> None:
    api.answers["/api/v1/nodes"] = {"items": [node("a", cpu="4", memory="8Gi", pods="10")]}
    api.answers["/api/v1/pods"] = ForbiddenError("pods")
    api.answers["/api/v1/namespaces/team/pods"] = {"items": [{"spec": {"nodeName": "a", "containers": [requests(cpu="1")]}}]}
    code, out, err = mpi("nodes")
    assert (code, "3/4" in out, err.startswith("You may list Pods of namespace team only: ")) == (0, True, True)
    api.answers["/api/v1/namespaces/team/pods"] = ForbiddenError("pods")
    code, out, err = mpi("nodes")
    assert (code, out.splitlines()[1].split(), "only totals" in err) == (0, ["a", "Ready", "4", "8.0Gi", "10"], True)
    api.answers["/api/v1/nodes"] = ForbiddenError("nodes is forbidden")
    assert mpi("nodes") == (4, "", "error: nodes is forbidden\n")


@pytest.mark.parametrize(
    ("spec", "milli"),
    [
        ({"containers": [requests(cpu="1"), requests(cpu="2")]}, 3000),
        ({"containers": [requests(cpu="1")], "initContainers": [requests(cpu="5")]}, 5000),
        ({"containers": [requests(cpu="1")], "initContainers": [requests(cpu="2") | {"restartPolicy": "Always"}]}, 3000),
        (
            {"containers": [requests(cpu="1")], "initContainers": [requests(cpu="2") | {"restartPolicy": "Always"}, requests(cpu="4")]},
            6000,
        ),
        ({"containers": [requests(cpu="1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [requests(cpu="1")], "resources": {"requests": {"cpu": "8"}}}, 8000),
        ({"containers": [{}]}, 0),
    ],
    ids=["containers", "init", "sidecar", "init after a sidecar", "overhead", "of the Pod", "none"],
)
def test_requests_of_a_pod_are_summed_as_the_scheduler_does(spec: dict[str, Any], milli: int) -> None:
    assert pod_requests(spec)["cpu"] == milli


CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"
OPERATOR = {"metadata": {"namespace": "mpi-operator"}, "spec": {"template": {"spec": {"containers": [{"image": "operator:v1"}]}}}}


def test_version_shows_what_may_be_read(mpi: Any, api: FakeApi) -> None:
    api.answers["/version"] = {"gitVersion": "v1.36.1"}
    api.answers["/apis/apps/v1/deployments"] = {"items": [OPERATOR]}
    api.answers[CRD] = {"spec": {"versions": [{"name": "v1", "served": False}, {"name": "v2beta1", "served": True}]}}
    code, out, err = mpi("version")
    assert (code, err) == (0, "")
    assert [line.split(maxsplit=1) for line in out.splitlines()] == [
        ["client", __version__],
        ["operator", "operator:v1 in namespace mpi-operator"],
        ["MPIJob", "kubeflow.org/v2beta1"],
        ["Kubernetes", "v1.36.1"],
    ]
    api.answers["/apis/apps/v1/deployments"] = ForbiddenError("deployments is forbidden")
    api.answers[CRD] = ForbiddenError("crds")
    api.answers["/apis/kubeflow.org"] = {"versions": [{"groupVersion": "kubeflow.org/v2beta1"}]}
    code, out, _ = mpi("version")
    assert code == 0
    assert "operator    unknown: deployments is forbidden\nMPIJob      kubeflow.org/v2beta1\n" in out
    api.answers["/api/v1/namespaces/mpi-operator/configmaps/mpi-operator-capabilities"] = {"data": {"version": "1.2.3"}}
    assert "operator    1.2.3\n" in mpi("version")[1]


def test_version_reports_what_is_missing(mpi: Any, api: FakeApi) -> None:
    api.answers["/version"] = UnreachableError("no answer")
    api.answers["/apis/apps/v1/deployments"] = {"items": []}
    code, out, _ = mpi("version")
    assert (code, out.splitlines()[1:]) == (
        1,
        ["operator    not installed", "MPIJob      not installed", "Kubernetes  unknown: no answer"],
    )


@pytest.mark.real_time
@pytest.mark.parametrize("verb", [("list",), ("why", "pi"), ("wait", "pi"), ("nodes",)], ids=lambda verb: verb[0])
async def test_each_verb_reports_that_it_waits_for_the_api_server(
    verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mpiop.client.connection.WAITING_SECONDS", 0.1)

    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(0.4)
        await exchange.answer({"kind": "Status", "message": "not today"}, 403)

    async with http_server(late) as server:
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig({"server": server.url}, {})))
        assert await asyncio.to_thread(run, [*verb, "--kubeconfig", str(path)]) == 4
    first, *others = capsys.readouterr().err.splitlines()
    assert first == f"waiting for the API server {server.url}"
    assert len(others) == 1
