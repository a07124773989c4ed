"""Who gets the script that stands in for ssh; what it does is in test_ssh_script_runs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from example_children import build_worker_pod
from example_jobs import MPIRUN, PI, SSHD, template, with_annotations, with_launcher, with_worker, with_workers
from mpiop.api.types import MPIJob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_template

MOUNT = "/etc/mpi-hosts"
CONFIG = "mpiop.kubeflow.org/ssh-config"
ADDRESSES = "mpiop.kubeflow.org/addresses"


def changed(template: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the template whose container has `fields` too."""
    [container] = template["spec"]["containers"]
    return {"spec": {"containers": [{**container, **fields}]}}


def mounting(path: str) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "own", "mountPath": path}]}


def called(job: MPIJob) -> dict[str, str]:
    """Return the variables of the launcher that name a program among our files."""
    [container] = build_launcher_template(job, BuildOptions())["spec"]["containers"]
    found = {each["name"]: each.get("value", "") for each in container["env"]}
    return {name: value for name, value in found.items() if value.startswith(f"{MOUNT}/ssh")}


def files(pod: Any) -> dict[str, str]:
    """Return the contents of our files in the first container of the pod, by path; none when they are not mounted."""
    spec = pod["spec"]
    mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"] if mount["mountPath"] == MOUNT}
    items = [item for volume in spec["volumes"] if volume["name"] in mounted for item in volume["downwardAPI"]["items"]]
    shown = {f"metadata.annotations['{name}']": text for name, text in pod["metadata"]["annotations"].items()}
    return {item["path"]: shown[item["fieldRef"]["fieldPath"]] for item in items}


@pytest.mark.parametrize(
    ("implementation", "variables", "program"),
    [
        ("OpenMPI", {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"}, f"{MOUNT}/ssh:ssh"),
        ("Intel", {"I_MPI_HYDRA_BOOTSTRAP_EXEC"}, f"{MOUNT}/ssh"),
        ("MPICH", {"HYDRA_LAUNCHER_EXEC"}, f"{MOUNT}/ssh"),
    ],
)
def test_every_library_is_configured_to_call_it_and_finds_it(implementation: str, variables: set[str], program: str) -> None:
    job = replace(PI, mpi_implementation=implementation)
    assert called(job) == dict.fromkeys(variables, program)
    launcher, worker = build_launcher_template(job, BuildOptions()), build_worker_pod(job, 0, BuildOptions())
    assert files(launcher).keys() == {"ssh", "ssh_config", "addresses"}
    assert files(worker).keys() == {"ssh", "ssh_config"}
    assert files(launcher)["addresses"] == ""


OTHERS = {
    "no worker to reach": with_workers(PI, 0),
    "the user opted out, for an image without a shell": with_annotations(PI, {"mpiop.kubeflow.org/ssh-agent": "false"}),
    "the user names a program": with_launcher(PI, changed(MPIRUN, env=[{"name": "OMPI_MCA_plm_rsh_agent", "value": "rsh"}])),
    "the launcher's own mount covers it": with_launcher(PI, changed(MPIRUN, **mounting(MOUNT))),
    "the workers' own mount covers it": with_worker(PI, changed(SSHD, **mounting(f"{MOUNT}/"))),
    "the workers' own mount above covers it": with_worker(PI, changed(SSHD, **mounting("/etc"))),
}


@pytest.mark.parametrize("job", OTHERS.values(), ids=OTHERS)
def test_who_does_not_call_it(job: MPIJob) -> None:
    assert called(job) == {}


@pytest.mark.parametrize("path", [MOUNT, f"{MOUNT}/", "etc/mpi-hosts", f"{MOUNT}/tuning", "/etc", "/"])
def test_nothing_is_mounted_over_or_below_a_mount_of_the_users(path: str) -> None:
    for pod in (
        build_launcher_template(with_launcher(PI, changed(MPIRUN, **mounting(path))), BuildOptions()),
        build_worker_pod(with_worker(PI, changed(SSHD, **mounting(path))), 0, BuildOptions()),
    ):
        assert "mpi-hosts" not in {volume["name"] for volume in pod["spec"]["volumes"]}
        assert "mpi-hosts" not in {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}


@pytest.mark.parametrize("path", ["/etc/mpi-hosts-too", "/etc/mpi", "/data"])
def test_it_lives_beside_other_mounts(path: str) -> None:
    assert files(build_worker_pod(with_worker(PI, changed(SSHD, **mounting(path))), 0, BuildOptions())).keys() == {"ssh", "ssh_config"}


def test_a_launcher_alone_gets_no_files() -> None:
    assert files(build_launcher_template(with_workers(PI, 0), BuildOptions())) == {}


def test_the_users_ssh_config_wins() -> None:
    given = template(metadata={"annotations": {CONFIG: "Port 2222\n"}})
    launcher = build_launcher_template(with_launcher(PI, given), BuildOptions())
    worker = build_worker_pod(with_worker(PI, given), 0, BuildOptions())
    assert files(launcher)["ssh_config"] == files(worker)["ssh_config"] == "Port 2222\n"


def test_addresses_of_another_job_are_not_taken_over() -> None:
    copied = with_launcher(PI, template(metadata={"annotations": {ADDRESSES: "0 10.0.0.1\n"}}))
    assert files(build_launcher_template(copied, BuildOptions()))["addresses"] == ""


def test_keep_alives_of_the_user_win() -> None:
    lines = files(build_worker_pod(PI, 0, BuildOptions()))["ssh_config"].splitlines()
    [include] = [number for number, line in enumerate(lines) if line.startswith("Include")]
    assert [number for number, line in enumerate(lines) if line.startswith("ServerAlive")] == [include + 2, include + 3]
    assert lines[include + 1] == "Host *", "else they belong to the last Host of the included file"
