"""Names, labels and owner references, as other programs know them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_jobs import PI
from mpiop.api.names import worker_name
from mpiop.controller import names

JOB_NAMES = st.from_regex(r"\A[a-z]([-a-z0-9]{0,40}[a-z0-9])?\Z")


def test_children_are_called_after_the_job() -> None:
    assert PI.service_name == "pi"
    assert PI.pod_group_name == "pi"
    assert PI.config_map_name == "pi-config"
    assert PI.secret_name == "pi-ssh"  # noqa: S105 - the name of an object
    assert PI.launcher_name == "pi-launcher"
    assert worker_name(PI.name, 10) == "pi-worker-10"


@given(name=JOB_NAMES, other=JOB_NAMES, index=st.integers(0, 99), another=st.integers(0, 99))
def test_names_within_a_job_never_meet(name: str, other: str, index: int, another: int) -> None:
    job = replace(PI, name=name)
    assert (worker_name(name, index) == worker_name(name, another)) == (index == another)
    of_one_kind = {job.config_map_name, replace(PI, name=other).config_map_name}
    assert len(of_one_kind) == (1 if name == other else 2)


@pytest.mark.parametrize(
    ("domain", "host"),
    [("", "pi-worker-0.pi.default.svc"), ("cluster.local", "pi-worker-0.pi.default.svc.cluster.local")],
)
def test_host_is_the_pods_name_below_the_service(domain: str, host: str) -> None:
    assert PI.host("pi-worker-0", domain) == host


def test_selector() -> None:
    assert names.selector("pi") == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }


def test_children_carry_app_beside_what_we_select_by() -> None:
    assert names.child_labels("pi") == {
        "app": "pi",
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }


@pytest.mark.parametrize(
    ("launcher_works", "role", "worker", "index"),
    [
        (False, "launcher", None, None),
        (False, "worker", 0, "0"),
        (False, "worker", 7, "7"),
        (True, "launcher", None, "0"),
        (True, "worker", 0, "1"),
        (True, "worker", 7, "8"),
    ],
)
def test_pod_labels(launcher_works: bool, role: str, worker: int | None, index: str | None) -> None:  # noqa: FBT001 - a column of the table
    job = replace(PI, run_launcher_as_worker=launcher_works)
    assert names.pod_labels(job, role, worker=worker) == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/job-role": role,
        "mpi_job_name": "pi",
        "mpi_role_type": role,
    } | ({} if index is None else {"training.kubeflow.org/replica-index": index})


def test_the_job_controls_its_children() -> None:
    assert names.child_metadata(PI, "pi-config", labels={"a": "b"}) == {
        "name": "pi-config",
        "namespace": "default",
        "labels": {"a": "b"},
        "ownerReferences": [
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": "pi",
                "uid": "1b671a64-40d5-491e-99b0-da01ff1f3341",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert names.child_metadata(PI, "pi")["labels"] == names.child_labels("pi")
