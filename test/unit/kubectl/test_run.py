"""`run` and `logs`: no option is silently something else."""

from typing import Any

import pytest
import yaml

from fakes.client_api import NOON, TAGGED, FakeApi, container, pod, stored
from mpiop.client.api import Object
from mpiop.client.errors import ForbiddenError

RUN = ("run", "--image", "i", "--name", "pi")


def test_options_after_the_program_are_the_program_s(mpi: Any) -> None:
    code, out, _ = mpi("run", "-n", "4", "--image", "i", "--dry-run", "client", "./solver", "-n", "100", "--detach")
    launcher = container(yaml.safe_load(out))
    assert (code, launcher["args"]) == (0, ["-n", "4", "--tag-output", "./solver", "-n", "100", "--detach"])


def test_each_mount_of_a_claim_is_made(mpi: Any) -> None:
    code, out, _ = mpi(*RUN, "--mount", "c:/in:ro", "--mount", "c:/out", "--mount", "d:/d", "--dry-run", "client", "--", "./a")
    for replica in yaml.safe_load(out)["spec"]["mpiReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        assert [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]] == ["c", "d"]
        assert pod["containers"][0]["volumeMounts"] == [
            {"name": "mount-0", "mountPath": "/in", "readOnly": True},
            {"name": "mount-0", "mountPath": "/out"},
            {"name": "mount-1", "mountPath": "/d"},
        ]
    assert code == 0


@pytest.mark.parametrize(
    ("mounts", "sentence"),
    [
        (("c:/a", "d:/a"), "--mount d:/a: c is mounted at /a already"),
        (("c:/a", "d:/a/"), "--mount d:/a/: c is mounted at /a already"),
        (("c:/a", "d://b/../a/."), "--mount d://b/../a/.: c is mounted at /a already"),
        (("c:/a:ro", "c:/a"), "--mount c:/a: c:ro is mounted at /a already"),
        (("c:/a:rx",), "'c:/a:rx' is not of the form --mount PVC:/PATH[:ro]"),
        (("c:/a:ro:ro",), "'c:/a:ro:ro' is not of the form --mount PVC:/PATH[:ro]"),
        (("c:/a:",), "'c:/a:' is not of the form --mount PVC:/PATH[:ro]"),
        (("/a",), "'/a' is not of the form --mount PVC:/PATH[:ro]"),
        (("c:",), "mount c:: the path must be absolute"),
    ],
)
def test_a_mount_that_is_not_one_is_refused(mpi: Any, mounts: tuple[str, ...], sentence: str) -> None:
    options = [word for mount in mounts for word in ("--mount", mount)]
    assert mpi(*RUN, *options, "--dry-run", "client", "--", "./a") == (2, "", f"error: {sentence}\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [(("--parallel", "0"), "0 is not in the range x>=1"), (("--detach",), "an array cannot be detached")],
)
def test_an_array_refuses_what_it_cannot_do(mpi: Any, api: FakeApi, options: tuple[str, ...], sentence: str) -> None:
    api.ends("Succeeded")
    code, _, err = mpi(*RUN, "--array", "1-2", *options, "--", "./a")
    assert (code, sentence in err, api.stored) == (2, True, {}), err


@pytest.mark.parametrize(("options", "left"), [(("--rm",), []), ((), ["pi-1", "pi-2"])])
@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_the_jobs_of_an_array_are_deleted_at_their_ends(
    mpi: Any, api: FakeApi, state: str, options: tuple[str, ...], left: list[str]
) -> None:
    api.ends(state)
    code, out, _ = mpi(*RUN, "--array", "1-2", *options, "--", "./a")
    assert (code, list(api.stored)) == (int(state == "Failed"), left)
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("pi-")] == ["pi-1", "pi-2"]


def test_a_job_of_an_array_that_cannot_be_deleted_is_named(mpi: Any, api: FakeApi) -> None:
    api.ends("Succeeded")

    def refused(job: Object) -> None:
        raise ForbiddenError(f"no right to delete {job['metadata']['name']}")

    api.delete_job = refused  # type: ignore[method-assign]
    code, out, err = mpi(*RUN, "--array", "1", "--rm", "--", "./a")
    assert (code, out, err.splitlines()[0]) == (0, "pi-1: succeeded\n", "pi-1 was not deleted: no right to delete pi-1")


def tried(api: FakeApi) -> Object:
    """Store a job of which one attempt failed, and its Pod."""
    job = stored(state="Running", annotations=TAGGED, attempts=[{"number": 1, "pod": "pi-launcher-x", "endTime": NOON}])
    api.stored["pi"] = job
    api.all_pods = [pod("pi-launcher-x", role="launcher")]
    api.logs = {"pi-launcher-x": [b"1 [1,0]<stdout>:zero\n3 [1,1]<stdout>:one\n"]}
    return job


def test_a_rank_of_a_failed_try_is_shown(mpi: Any, api: FakeApi) -> None:
    job = tried(api)
    assert mpi("logs", "pi", "--attempt", "1", "--rank", "1")[1] == "one\n"
    api.all_pods, job["status"]["lastFailure"] = [], {"reason": "Error", "log": "[1,0]<stdout>:zero\n[1,1]<stdout>:one"}
    assert mpi("logs", "pi", "--attempt", "1", "--rank", "1")[1] == "one\n"
    job["metadata"]["annotations"] = {}
    assert "does not name ranks" in mpi("logs", "pi", "--attempt", "1", "--rank", "1")[2]


def test_a_try_whose_container_never_ran_has_no_log(mpi: Any, api: FakeApi) -> None:
    tried(api)
    api.all_pods[0]["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
    code, out, err = mpi("logs", "pi", "--attempt", "1")
    assert (code, out) == (3, "")
    assert err == "error: pod pi-launcher-x of attempt 1 has no log, since its container never ran: UnexpectedAdmissionError\n"
