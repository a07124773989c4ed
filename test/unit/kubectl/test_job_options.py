"""Options of `run` that set fields of the job."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi, pod_spec
from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.client.api import Object
from mpiop.client.errors import ClientError, InvalidError
from mpiop.kubectl.main import run

RUN = ("run", "--image", "i", "--name", "pi", "--gpus", "0")
OFFERED: dict[str, Object | ClientError] = {
    "/api/v1/namespaces/mpi-operator/configmaps/mpi-operator-capabilities": {"data": {"ssh-auto": "Injected"}}
}
PROGRAM = ("--dry-run=client", "--", "./a")


def pods(mpi: Any, *options: str) -> list[dict[str, Any]]:
    """Return the specs of the Pods of launcher and workers."""
    code, out, err = mpi(*RUN, *options, *PROGRAM)
    assert code == 0, err
    return [replica["template"]["spec"] for replica in yaml.safe_load(out)["spec"]["mpiReplicaSpecs"].values()]


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (("--node-selector", "zone=a", "--node-selector", "gpu=h100"), {"nodeSelector": {"zone": "a", "gpu": "h100"}}),
        (("--image-pull-secret", "a", "--image-pull-secret", "b"), {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}),
        (("--service-account", "solver"), {"serviceAccountName": "solver"}),
        (("--host-network",), {"hostNetwork": True}),
        (("--toleration", "gpu"), {"tolerations": [{"key": "gpu", "operator": "Exists"}]}),
        (
            ("--toleration", "a=b:NoExecute", "--toleration", "c:NoSchedule"),
            {
                "tolerations": [
                    {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"},
                    {"key": "c", "operator": "Exists", "effect": "NoSchedule"},
                ]
            },
        ),
    ],
)
def test_launcher_and_workers_get_the_fields_of_a_pod(mpi: Any, options: tuple[str, ...], fields: dict[str, Any]) -> None:
    plain = pods(mpi)
    assert pods(mpi, *options) == [{**pod, **fields} for pod in plain]


def test_empty_folders_are_beside_claims(mpi: Any) -> None:
    for pod in pods(mpi, "--empty-dir", "/scratch:10Gi", "--empty-dir", "/tmp", "--mount", "c:/data"):  # noqa: S108 - in a container
        volumes = {volume.pop("name"): volume for volume in pod["volumes"]}
        found = {mount["mountPath"]: volumes[mount["name"]] for mount in pod["containers"][0]["volumeMounts"]}
        assert found == {
            "/scratch": {"emptyDir": {"sizeLimit": "10Gi"}},
            "/tmp": {"emptyDir": {}},  # noqa: S108 - in a container
            "/data": {"persistentVolumeClaim": {"claimName": "c"}},
        }


def test_labels_are_on_the_job_and_its_pods(mpi: Any) -> None:
    job = yaml.safe_load(mpi(*RUN, "--label", "team=a", "--label", "cost=9", "--queue", "q", *PROGRAM)[1])
    assert job["metadata"]["labels"] == {"team": "a", "cost": "9", "kueue.x-k8s.io/queue-name": "q"}
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        assert replica["template"]["metadata"] == {"labels": {"team": "a", "cost": "9"}}


@pytest.mark.parametrize(("gpus", "limits"), [("2", {"nvidia.com/gpu": "2"}), ("amd.com/gpu=4", {"amd.com/gpu": "4"}), ("0", None)])
def test_workers_alone_get_gpus_of_any_vendor(mpi: Any, gpus: str, limits: Any) -> None:
    launcher, worker = pods(mpi, "--gpus", gpus)
    assert worker["containers"][0].get("resources", {}).get("limits") == limits
    assert "resources" not in launcher["containers"][0]


@pytest.mark.parametrize("count", [("-n", "4"), ("-np", "4"), ("-n4",), ("--ranks=4",)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_options_of_mpirun_are_before_the_program(mpi: Any, count: tuple[str, ...], library: str) -> None:
    words = ("--mpirun-args", "--bind-to core --map-by 'ppr:2:node'", "--mpirun-args", "-x A", "--mpi", library)
    launcher, _ = pods(mpi, *count, *words)
    arguments = ["-n", "4", *LIBRARIES[library].tag_options, "--bind-to", "core", "--map-by", "ppr:2:node", "-x", "A", "./a"]
    assert launcher["containers"][0]["args"] == arguments


def test_retries_and_restarts_are_two_budgets(mpi: Any) -> None:
    job = yaml.safe_load(mpi(*RUN, "--retries", "2", "--max-restarts", "3", *PROGRAM)[1])
    assert job["spec"]["runPolicy"]["backoffLimit"] == 2
    assert job["metadata"]["annotations"]["mpiop.kubeflow.org/max-restarts"] == "3"
    assert "mpiop.kubeflow.org/max-restarts" not in yaml.safe_load(mpi(*RUN, *PROGRAM)[1])["metadata"]["annotations"]


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1h", 3600), ("1d12h", 129600), ("0", 0)])
def test_times_have_units(mpi: Any, text: str, seconds: int) -> None:
    policy = yaml.safe_load(mpi(*RUN, "--ttl", text, "--time-limit", text, *PROGRAM)[1])["spec"]["runPolicy"]
    assert (policy["ttlSecondsAfterFinished"], policy["activeDeadlineSeconds"]) == (seconds, seconds)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--memory", "8GB"), "memory 8GB: write 8G or 8Gi"),
        (("--memory", "8gb"), "memory 8gb: write 8G or 8Gi"),
        (("--memory", "16 GiB"), "memory 16 GiB: write 16Gi"),
        (("--memory", "1.5k"), None),
        (("--memory", "512KB"), "memory 512KB: write 512k or 512Ki"),
        (("--memory", "500m"), "memory 500m: write 500M or 500Mi"),
        (("--memory", "much"), "memory much: write a number of bytes, such as 8Gi or 500Mi"),
        (("--memory", "0"), "memory 0: write a number of bytes, such as 8Gi or 500Mi"),
        (("--shm", "2GB"), "shm 2GB: write 2G or 2Gi"),
        (("--cpu", "2 cores"), "cpu 2 cores: write a number of CPUs, such as 2 or 500m"),
        (("--cpu", "500m"), None),
        (("--gpus", "-1"), "gpus -1: write a number, or with another vendor's resource amd.com/gpu=2"),
        (("--gpus", "amd=2"), "gpus amd=2: write a number, or with another vendor's resource amd.com/gpu=2"),
        (("--gpus", "9" * 5000), "gpus 999"),
        (("--gpus", "two"), "gpus two: write a number, or with another vendor's resource amd.com/gpu=2"),
        (("--toleration", "a:Never"), "toleration 'a:Never': write KEY[=VALUE][:EFFECT], with an effect of NoSchedule, "),
        (("--toleration", "=b"), "toleration '=b': write KEY[=VALUE][:EFFECT]"),
        (("--label", "team"), "'team' is not of the form --label KEY=VALUE"),
        (("--empty-dir", "tmp"), "empty-dir tmp: the path must be absolute"),
        (("--empty-dir", "/a:9GB"), "empty-dir size 9GB: write 9G or 9Gi"),
        (("--empty-dir", "/a", "--empty-dir", "/a/:1Gi"), "--empty-dir /a/:1Gi: another one is mounted at /a already"),
        (("--empty-dir", "/a", "--mount", "c:/a"), "mount c:/a: an empty-dir is mounted at /a already"),
        (("--mpirun-args", "--map-by 'x"), "--mpirun-args --map-by 'x: a quote is not closed"),
        (("--mpirun-args", "-np 8"), "mpirun_args -np: give the number of ranks with ranks (-n)"),
        (("--max-restarts", "101"), "max_restarts is 101: it must be from 0 to 100"),
    ],
)
def test_a_value_that_kubernetes_would_not_understand_is_one_sentence(mpi: Any, options: tuple[str, ...], sentence: str | None) -> None:
    code, _, err = mpi(*RUN, *options, *PROGRAM)
    assert (code, err.startswith(f"error: {sentence}") if sentence else not err) == (2 if sentence else 0, True), err
    assert len(err.splitlines()) <= 1


@pytest.mark.parametrize("output", ["yaml", "json", "name"])
def test_a_dry_run_prints_as_kubectl_does(mpi: Any, api: FakeApi, output: str) -> None:
    for where in ("client", "server"):
        code, out, _ = mpi(*RUN, f"--dry-run={where}", "-o", output, "--", "./a")
        found = out if output == "name" else (json.loads if output == "json" else yaml.safe_load)(out)["metadata"]["name"]
        assert (code, found) == (0, "mpijob.kubeflow.org/pi\n" if output == "name" else "pi")
    assert api.stored == {}
    assert mpi(*RUN, "--detach", "-o", "name", "--", "./a")[1] == "mpijob.kubeflow.org/pi\n"
    assert mpi(*RUN, "-o", "name", "--", "./a")[0] == 2


PATCH = """\
metadata:
  annotations: {team: a}
spec:
  mpiReplicaSpecs:
    Worker:
      template:
        spec:
          runtimeClassName: nvidia
          containers:
          - name: worker
            imagePullPolcy: Always
"""


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    file = tmp_path / "patch.yaml"
    file.write_text(PATCH)
    return file


def test_a_patch_wins_and_is_checked_before_the_job_is_created(mpi: Any, api: FakeApi, patch: Path) -> None:
    assert mpi(*RUN, "--patch", str(patch), "--detach", "--", "./a")[0] == 0
    assert [request[0] for request in api.requests] == ["create", "check", "check", "create"]
    job = api.stored["pi"]
    assert job["metadata"]["annotations"] == {"mpiop.kubeflow.org/output": "tagged", "team": "a"}
    pod = pod_spec(job, "Worker")
    container = {"name": "worker", "image": "i", "imagePullPolcy": "Always"}
    assert pod == {"containers": [container], "runtimeClassName": "nvidia"}


@pytest.mark.parametrize(
    ("field", "line"),
    [("spec.mpiReplicaSpecs.Worker.template.spec.containers[0].imagePullPolcy", 11), ("spec.mpiReplicaSpecs.Launcher.template", None)],
)
def test_a_mistake_in_a_patch_has_its_line(mpi: Any, api: FakeApi, patch: Path, field: str, line: int | None) -> None:
    api.answers["create"] = InvalidError(f'unknown field "{field}"')
    code, _, err = mpi(*RUN, "--patch", str(patch), "--", "./a")
    where = "" if line is None else f"{patch}:{line}: "
    assert (code, err) == (2, f'error: {where}unknown field "{field}"\n')


@pytest.mark.parametrize("text", ["- a\n", "a: 1\n---\nb: 2\n", "text\n"])
def test_a_patch_is_one_object(mpi: Any, tmp_path: Path, text: str) -> None:
    file = tmp_path / "patch.yaml"
    file.write_text(text)
    code, _, err = mpi(*RUN, "--patch", str(file), *PROGRAM)
    assert (code, "a patch is one object" in err) == (2, True), err


@pytest.mark.parametrize(("options", "annotation"), [((), "Injected"), (("--ssh", "image"), "Image")])
@pytest.mark.parametrize("dry_run", [("--dry-run", "client"), ("--dry-run", "server"), ("--detach", "-o", "yaml")], ids=" ".join)
def test_what_a_dry_run_shows_of_ssh_is_what_is_created(
    mpi: Any, api: FakeApi, options: tuple[str, ...], annotation: str, dry_run: tuple[str, ...]
) -> None:
    api.answers = dict(OFFERED)
    code, out, err = mpi("run", "--image", "i", *options, *dry_run, "--", "./a")
    assert (code, yaml.safe_load(out)["metadata"]["annotations"]["mpiop.kubeflow.org/ssh"]) == (0, annotation), err


def test_without_a_cluster_a_manifest_leaves_ssh_to_the_operator(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["run", "--image", "i", "--kubeconfig", str(tmp_path / "none"), "--dry-run", "client"]
    assert run([*command, "--", "./a"]) == 0
    assert "mpiop.kubeflow.org/ssh" not in capsys.readouterr().out
    assert run([*command, "--ssh", "injected", "--", "./a"]) == 0
    assert "mpiop.kubeflow.org/ssh: Injected" in capsys.readouterr().out


@pytest.mark.parametrize("options", [("--array=1-9",), ("--rm",)], ids=["an array", "a job"])
def test_a_run_asks_once_what_the_operator_offers(mpi: Any, api: FakeApi, options: tuple[str, ...]) -> None:
    asked: list[str] = []
    get = api.get

    def counted(path: str) -> Object:
        asked.append(path)
        return get(path)

    api.get = counted  # type: ignore[method-assign]
    api.ends("Succeeded")
    api.answers = dict(OFFERED)
    assert mpi("run", "--image=i", "--name=pi", *options, "./a")[0] == 0
    assert asked == ["/api/v1/namespaces/team/configmaps/mpi-operator-capabilities", *OFFERED]
