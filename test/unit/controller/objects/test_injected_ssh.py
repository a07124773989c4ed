"""What mpiop-agent needs in the pods of a job, and which jobs get it."""

from dataclasses import replace
from typing import Any

import pytest

from example_children import build_worker_pod
from example_jobs import MPIRUN, PI, SSHD, container, template, with_launcher, with_worker, with_workers
from mpiop.api.checkpoint import Checkpoint
from mpiop.api.types import MPIJob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_template

IMAGE = "example.com/agent:v1"
BY_ANNOTATION = replace(PI, ssh="Injected")
BY_FLAG = BuildOptions(ssh="Injected", agent_image=IMAGE)
OPTIONS = BuildOptions(agent_image=IMAGE)
COMMAND = ["/opt/mpiop/mpiop-agent", "sshd", "--key", "/opt/mpiop-key/key"]


def pods(job: MPIJob, options: BuildOptions = OPTIONS) -> list[Any]:
    return [build_launcher_template(job, options), build_worker_pod(job, 0, options)]


def is_given(pod: Any) -> bool:
    return any(each["image"] == IMAGE for each in pod["spec"].get("initContainers") or ())


def test_both_pods_get_the_program_and_the_key() -> None:
    for pod in pods(BY_ANNOTATION):
        spec = pod["spec"]
        [init], [first] = spec["initContainers"], spec["containers"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        mounts = {mount["mountPath"]: mount for mount in first["volumeMounts"]}
        assert init["args"] == ["install", "/opt/mpiop"]
        assert [(mount["name"], mount["mountPath"]) for mount in init["volumeMounts"]] == [(mounts["/opt/mpiop"]["name"], "/opt/mpiop")]
        assert volumes[mounts["/opt/mpiop"]["name"]]["emptyDir"] == {}
        secret = volumes[mounts["/opt/mpiop-key"]["name"]]["secret"]
        assert secret == {"secretName": "pi-ssh", "items": [{"key": "ssh-privatekey", "path": "key", "mode": 0o444}]}
        assert mounts["/opt/mpiop"]["readOnly"]
        assert mounts["/opt/mpiop-key"]["readOnly"]


def test_the_image_itself_may_be_the_volume() -> None:
    for pod in pods(BY_ANNOTATION, replace(OPTIONS, agent_delivery="Mount")):
        [mount] = [mount for mount in pod["spec"]["containers"][0]["volumeMounts"] if mount["mountPath"] == "/opt/mpiop"]
        [volume] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == mount["name"]]
        assert volume["image"] == {"reference": IMAGE, "pullPolicy": "IfNotPresent"}
        assert not pod["spec"].get("initContainers")


def test_the_init_container_keeps_a_restricted_guaranteed_pod_what_it_is() -> None:
    [init] = build_worker_pod(BY_ANNOTATION, 0, OPTIONS)["spec"]["initContainers"]
    assert init["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
    }
    assert init["resources"]["requests"] == init["resources"]["limits"]


def test_a_pod_that_runs_as_root_may_do_so() -> None:
    job = with_worker(BY_ANNOTATION, template(container(), securityContext={"runAsUser": 0}))
    [init] = build_worker_pod(job, 0, OPTIONS)["spec"]["initContainers"]
    assert "runAsNonRoot" not in init["securityContext"]


def test_init_containers_of_the_user_stay() -> None:
    job = with_worker(BY_ANNOTATION, template(container(), initContainers=[{"name": "own", "image": "example.com/own"}]))
    assert [each["image"] for each in build_worker_pod(job, 0, OPTIONS)["spec"]["initContainers"]] == [IMAGE, "example.com/own"]


def test_a_worker_serves_and_knows_its_node() -> None:
    [worker] = build_worker_pod(BY_ANNOTATION, 0, OPTIONS)["spec"]["containers"]
    assert worker["command"] == COMMAND
    assert {"name": "MPIOP_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in worker["env"]
    assert "ports" not in worker


def test_variables_of_the_user_stay_except_for_the_node() -> None:
    own = [{"name": "OMP_NUM_THREADS", "value": "4"}, {"name": "MPIOP_NODE", "value": "mine"}]
    [worker] = build_worker_pod(with_worker(BY_ANNOTATION, template(container(env=own))), 0, OPTIONS)["spec"]["containers"]
    assert own[0] in worker["env"]
    assert [variable for variable in worker["env"] if variable["name"] == "MPIOP_NODE"] == [
        {"name": "MPIOP_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    ]


@pytest.mark.parametrize("given", [{"command": ["/usr/sbin/sshd", "-D"]}, {"args": ["serve"]}])
def test_a_command_of_the_user_is_not_touched(given: dict[str, Any]) -> None:
    worker = build_worker_pod(with_worker(BY_ANNOTATION, template(container(**given))), 0, OPTIONS)
    [first] = worker["spec"]["containers"]
    assert {name: first[name] for name in ("command", "args") if name in first} == given
    assert is_given(worker), "its command may call the program"


@pytest.mark.parametrize(
    ("ports", "desired"),
    [
        (None, [{"containerPort": 2222}]),
        ([{"containerPort": 80}], [{"containerPort": 80}, {"containerPort": 2222}]),
        ([{"containerPort": 2222, "name": "ssh"}], [{"containerPort": 2222, "name": "ssh"}]),
    ],
)
def test_on_the_nodes_network_the_scheduler_knows_the_port(ports: Any, desired: Any) -> None:
    job = with_worker(BY_ANNOTATION, template(container(ports=ports), hostNetwork=True))
    assert build_worker_pod(job, 0, OPTIONS)["spec"]["containers"][0]["ports"] == desired


def scripts(job: MPIJob, options: BuildOptions = OPTIONS) -> list[str]:
    return [pod["metadata"]["annotations"]["mpiop.kubeflow.org/ssh"] for pod in pods(job, options)]


def test_what_mpirun_calls_is_the_agent() -> None:
    launcher, worker = scripts(BY_ANNOTATION)
    common = "exec /opt/mpiop/mpiop-agent ssh --job=pi --namespace=default --key=/opt/mpiop-key/key"
    message = "--addresses=/etc/mpi-hosts/addresses --message=/dev/termination-log --mark='mpirun calls ssh'"
    assert launcher.splitlines()[-1] == f'{common} {message} -- "$@"'
    assert worker.splitlines()[-1] == f'{common} -- "$@"'


@pytest.mark.parametrize(
    ("job", "value"), [(BY_ANNOTATION, "/bin/sh"), (replace(BY_ANNOTATION, mpi_implementation="MPICH"), None), (PI, None)]
)
def test_open_mpi_is_told_the_shell_of_a_user_that_no_file_knows(job: MPIJob, value: str | None) -> None:
    [launcher] = build_launcher_template(job, OPTIONS)["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in launcher["env"]}
    assert variables.get("SHELL") == value
    assert ("OMPI_MCA_orte_leave_session_attached" in variables) == (value is not None)


def test_an_image_that_has_ssh_gets_nothing() -> None:
    for job, options in ((PI, OPTIONS), (replace(PI, ssh="Image"), BY_FLAG), (with_workers(BY_ANNOTATION, 0), OPTIONS)):
        launcher = build_launcher_template(job, options)
        assert not is_given(launcher)
        assert "mpiop-agent" not in str(launcher)
    assert "mpiop-agent" not in str(build_worker_pod(replace(PI, ssh="Image"), 0, BY_FLAG))


OWN_SSHD = with_worker(PI, template(container(command=["/usr/sbin/sshd", "-De", "-p", "2200"])))
COVERED = with_launcher(PI, template(container(volumeMounts=[{"name": "own", "mountPath": "/opt"}])))


@pytest.mark.parametrize(
    ("job", "is_injected"),
    [(PI, True), (OWN_SSHD, False), (COVERED, False), (replace(OWN_SSHD, ssh="Injected"), True)],
    ids=["nothing said", "an sshd of its own", "a mount in our place", "an sshd of its own, and the annotation"],
)
def test_the_flag_is_for_jobs_that_bring_nothing(job: MPIJob, *, is_injected: bool) -> None:
    assert [is_given(pod) for pod in pods(job, BY_FLAG)] == [is_injected, is_injected]
    assert ["mpiop-agent" in script for script in scripts(job, BY_FLAG)] == [is_injected, is_injected]


def test_templates_are_not_changed() -> None:
    before = str((MPIRUN, SSHD))
    pods(BY_ANNOTATION)
    assert str((MPIRUN, SSHD)) == before


SAVING = replace(BY_ANNOTATION, checkpoint=Checkpoint("SIGUSR1", 90))


def test_ranks_are_asked_to_save_their_work_before_their_pods_end() -> None:
    launcher, worker = pods(SAVING)
    assert worker["spec"]["containers"][0]["command"] == [*COMMAND, "--checkpoint-signal=SIGUSR1", "--checkpoint-grace=90s"]
    assert launcher["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == [
        "/opt/mpiop/mpiop-agent",
        "checkpoint",
        "--job=pi",
        "--namespace=default",
        "--addresses=/etc/mpi-hosts/addresses",
        "--hosts=/etc/mpi/hostfile",
        "--key=/opt/mpiop-key/key",
        "--signal=SIGUSR1",
        "--grace=90s",
    ]
    assert [pod["spec"]["terminationGracePeriodSeconds"] for pod in (launcher, worker)] == [120, 120]
    assert all("terminationGracePeriodSeconds" not in pod["spec"] for pod in pods(BY_ANNOTATION))


def test_pods_have_their_own_time_after_the_checkpoint() -> None:
    changed = template(container(), terminationGracePeriodSeconds=0)
    job = with_worker(with_launcher(SAVING, changed), changed)
    assert [pod["spec"]["terminationGracePeriodSeconds"] for pod in pods(job)] == [90, 90]


def test_what_a_launcher_does_before_its_end_is_kept() -> None:
    lifecycle = {"preStop": {"sleep": {"seconds": 5}}}
    launcher = build_launcher_template(with_launcher(SAVING, template({**container(), "lifecycle": lifecycle})), OPTIONS)
    assert launcher["spec"]["containers"][0]["lifecycle"] == lifecycle
    assert "terminationGracePeriodSeconds" not in launcher["spec"]
    started = {"postStart": {"exec": {"command": ["true"]}}}
    launcher = build_launcher_template(with_launcher(SAVING, template({**container(), "lifecycle": started})), OPTIONS)
    assert set(launcher["spec"]["containers"][0]["lifecycle"]) == {"postStart", "preStop"}


def test_without_the_agent_nobody_is_asked() -> None:
    launcher, worker = pods(replace(SAVING, ssh="Image"))
    assert "lifecycle" not in launcher["spec"]["containers"][0]
    assert "terminationGracePeriodSeconds" not in worker["spec"]
