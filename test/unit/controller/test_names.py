"""Names, labels and owner references, as other programs know them."""

from dataclasses import replace

import pytest

from example_jobs import PI
from mpiop.api.names import worker_name
from mpiop.controller import names


def test_children_are_called_after_the_job() -> None:
    assert PI.service_name == "pi"
    assert PI.pod_group_name == "pi"
    assert PI.config_map_name == "pi-config"
    assert PI.secret_name == "pi-ssh"  # noqa: S105 - the name of an object
    assert PI.launcher_name == "pi-launcher"
    assert worker_name(PI.name, 10) == "pi-worker-10"


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
