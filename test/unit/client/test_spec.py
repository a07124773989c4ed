"""What users ask for becomes an MPIJob."""

from typing import Any

import pytest

from fakes.client_api import container, pod_spec
from mpiop.client.manifest import generated_name, manifest, mpirun
from mpiop.client.spec import JobSpec


def made(**fields: Any) -> dict[str, Any]:
    return manifest(JobSpec(**({"command": ["./solver"], "image": "solver:1"} | fields)), "job")


@pytest.mark.parametrize(("ranks", "slots", "workers"), [(1, 1, 1), (8, 1, 8), (8, 2, 4), (9, 2, 5), (3, 8, 1)])
def test_there_are_as_many_workers_as_the_ranks_need(ranks: int, slots: int, workers: int) -> None:
    job = made(ranks=ranks, slots=slots)
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == workers
    assert job["spec"]["slotsPerWorker"] == slots


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({}, ["mpirun", "-n", "1", "--tag-output", "./solver"]),
        ({"is_tagged": False}, ["mpirun", "-n", "1", "./solver"]),
        ({"ranks": 4, "env": {"A": "1"}, "is_tagged": False}, ["mpirun", "-n", "4", "-x", "A", "./solver"]),
        ({"mpi": "mpich", "env": {"A": "1"}}, ["mpirun", "-n", "1", "-prepend-pattern=[1,%r]<output>:", "./solver"]),
        ({"mpi": "intel", "workdir": "/data"}, ["mpirun", "-n", "1", "-prepend-pattern=[1,%r]<output>:", "-wdir", "/data", "./solver"]),
        ({"files": ("x", {"a": "b"}), "is_tagged": False}, ["mpirun", "-n", "1", "-wdir", "/upload", "./solver"]),
    ],
)
def test_mpirun_is_called_as_its_library_wants_it(fields: dict[str, Any], command: list[str]) -> None:
    assert mpirun(JobSpec(command=["./solver"], image="i", **fields)) == command


@pytest.mark.parametrize(
    ("word", "sent"), [("echo $(HOME)", "echo $$(HOME)"), ("kill $$", "kill $$$$"), ("$HOME", "$$HOME"), ("a$$(b)", "a$$$$(b)"), ("a", "a")]
)
def test_kubernetes_leaves_words_and_variables_as_they_are(word: str, sent: str) -> None:
    job = made(command=["sh", "-c", word], env={"A": word})
    assert container(job)["args"][-1] == sent
    for pod in (pod_spec(job), pod_spec(job, "Worker")):
        assert pod["containers"][0]["env"][-1] == {"name": "A", "value": sent}


def test_resources_are_those_of_each_worker() -> None:
    resources = container(made(cpu="2", memory="4Gi", gpus=1), "Worker")["resources"]
    assert resources == {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi", "nvidia.com/gpu": "1"}}
    assert "resources" not in container(made(), "Worker")


def test_volumes_are_in_launcher_and_workers() -> None:
    job = made(mounts={"/data": "claim"}, files=("files-x", {"file-0": "bin/solver"}))
    for pod in (pod_spec(job), pod_spec(job, "Worker")):
        assert [volume["name"] for volume in pod["volumes"]] == ["files", "mount-0"]
        assert pod["volumes"][0]["configMap"]["items"] == [{"key": "file-0", "path": "bin/solver"}]


@pytest.mark.parametrize(
    ("fields", "annotations"),
    [
        ({"shm": "8Gi"}, {"mpiop.kubeflow.org/output": "tagged", "mpiop.kubeflow.org/shm": "8Gi"}),
        ({"shm": "8Gi", "is_tagged": False}, {"mpiop.kubeflow.org/shm": "8Gi"}),
        ({"is_tagged": False}, None),
    ],
)
def test_the_operator_is_asked_for_shared_memory(fields: dict[str, Any], annotations: Any) -> None:
    assert made(**fields)["metadata"].get("annotations") == annotations


def test_another_user_has_another_home() -> None:
    job = made(user=1000, home="/home/mpiuser/")
    assert job["spec"]["sshAuthMountPath"] == "/home/mpiuser/.ssh"
    assert container(job, "Worker")["args"] == ["-De", "-f", "/home/mpiuser/.sshd_config"]
    assert pod_spec(job)["securityContext"] == {"runAsUser": 1000}


def test_limits_queue_and_priority_are_where_kubernetes_reads_them() -> None:
    job = made(queue="gpus", priority="high", retries=2, ttl=60, time_limit=3600)
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "gpus"}
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 2, "ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 3600}
    assert job["spec"]["runPolicy"] == policy
    assert (pod_spec(job)["priorityClassName"], pod_spec(job, "Worker")["priorityClassName"]) == ("high", "high")


@pytest.mark.parametrize(
    ("program", "name"),
    [("./Solver_v2", "solver-v2"), ("/usr/bin/python3", "python3"), ("__", "job"), ("9lives", "job-9lives"), ("./grüße.sh", "gr-e-sh")],
)
def test_a_job_without_a_name_is_called_after_its_program(program: str, name: str) -> None:
    assert generated_name([program]) == name
    assert manifest(JobSpec(command=[program], image="i"), "")["metadata"]["generateName"] == f"{name}-"
