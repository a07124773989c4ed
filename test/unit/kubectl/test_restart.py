"""`restart` and `suspend`: nothing is lost that was not asked for."""

import copy
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi, pod_spec, raises, stored
from mpiop.client.api import Object
from mpiop.client.errors import ClientError, ForbiddenError, NotFoundError, UnreachableError

MAP_PATH = "/api/v1/namespaces/team/configmaps/solver-files-abcde"


def with_files(api: FakeApi, **owner: str) -> Object:
    """Store an ended job whose files are in a ConfigMap."""
    job = stored(state="Failed")
    job["metadata"]["uid"] = "uid-old"
    volumes = [{"name": "files", "configMap": {"name": "solver-files-abcde"}}]
    for role in ("Launcher", "Worker"):
        pod_spec(job, role)["volumes"] = volumes
    references = [{"uid": "uid-other"}, {"uid": "uid-old"} | owner]
    api.stored["pi"] = job
    api.answers[MAP_PATH] = {"metadata": {"name": "solver-files-abcde", "uid": "uid-files", "ownerReferences": references}}
    return copy.deepcopy(job)


def test_restart_keeps_the_uploaded_files(mpi: Any, api: FakeApi) -> None:
    job = with_files(api)
    assert mpi("restart", "pi") == (0, "job pi created again\n", "")
    assert api.stored["pi"]["spec"] == job["spec"]
    changes = [request for request in api.requests if request[0] != "create" or not request[2]]
    assert [request[0] for request in changes] == ["patch configmap", "delete", "create", "patch configmap"]
    freed, given = (request[2]["metadata"] for request in changes if request[0] == "patch configmap")
    assert freed == {"uid": "uid-files", "ownerReferences": [{"uid": "uid-other"}]}
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "uid-pi"}
    assert given == {"uid": "uid-files", "ownerReferences": [{"uid": "uid-other"}, owner]}


def test_restart_leaves_a_config_map_of_somebody_else_alone(mpi: Any, api: FakeApi) -> None:
    with_files(api, uid="uid-another-job")
    assert mpi("restart", "pi")[0] == 0
    assert "patch configmap" not in [request[0] for request in api.requests]


@pytest.mark.parametrize("path", ["create", MAP_PATH])
@pytest.mark.parametrize(("error", "code"), [(ForbiddenError("denied the request"), 4), (NotFoundError("gone"), 3)])
def test_restart_deletes_nothing_that_cannot_be_created_again(mpi: Any, api: FakeApi, path: str, error: ClientError, code: int) -> None:
    job = with_files(api)
    api.answers[path] = error
    found, out, err = mpi("restart", "pi")
    assert (found, out, err) == (code, "", f"error: job pi was not deleted, since it could not be created again: {error}\n")
    assert (api.stored["pi"], [request[0] for request in api.requests if "delete" in request[0]]) == (job, [])


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [(ForbiddenError("exceeded quota"), 4, "error: exceeded quota"), (KeyboardInterrupt(), 130, "stopped")],
)
def test_restart_prints_a_job_that_it_could_not_create_again(
    mpi: Any, api: FakeApi, error: BaseException, code: int, sentence: str
) -> None:
    job = with_files(api)
    api.answers["create pi"] = error
    found, out, err = mpi("restart", "pi")
    printed = yaml.safe_load(out)
    assert (found, printed["metadata"]["name"], printed["spec"]) == (code, "pi", job["spec"])
    assert list(filter(None, err.splitlines())) == [
        "If job pi is gone, create it again from the lines above: kubectl mpi submit FILE",
        sentence,
    ]


def test_restart_waits_for_an_api_server_that_is_away(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Failed")
    api.steps = [lambda: None, raises(UnreachableError("no answer"))]
    assert mpi("restart", "pi") == (0, "job pi created again\n", "")


@pytest.mark.parametrize("verb", ["suspend", "restart"])
def test_a_degraded_job_that_runs_is_asked_about(mpi: Any, api: FakeApi, verb: str) -> None:
    job = stored(state="Running")
    degraded = {"type": "Degraded", "status": "True", "reason": "NodeLost", "message": "", "lastTransitionTime": ""}
    job["status"]["conditions"].append(degraded)
    job["status"]["summary"]["state"] = "NodeLost"
    api.stored["pi"] = job
    code, _, err = mpi(verb, "pi")
    assert (code, "pass --yes" in err, api.stored["pi"]) == (2, True, job)
    assert not {"patch", "delete"} & {request[0] for request in api.requests}


def test_a_quota_that_the_job_itself_fills_is_no_reason_not_to_restart_it(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Failed")
    api.answers["dry run"] = ForbiddenError("exceeded quota: jobs")
    assert mpi("restart", "pi") == (0, "job pi created again\n", "")
