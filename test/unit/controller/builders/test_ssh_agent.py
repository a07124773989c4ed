"""The script that stands in for ssh: who gets it, and what it does when it is run for real."""

import contextlib
import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from example_jobs import MPIRUN, PI, SSHD, with_annotations, with_launcher, with_worker, with_workers
from mpiop.api.types import MPIJob
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.launcher_job import build_launcher_template
from mpiop.controller.builders.ssh_agent import MARK, agent_environment
from mpiop.controller.builders.worker_pod import build_worker_pod

ANNOTATION = "mpiop.kubeflow.org/ssh-agent"
ITEM = {"path": "ssh", "fieldRef": {"fieldPath": f"metadata.annotations['{ANNOTATION}']"}, "mode": 0o555}


def changed(template: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the template whose container has `fields` too."""
    [container] = template["spec"]["containers"]
    return {"spec": {"containers": [{**container, **fields}]}}


def mounting(path: str) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "own", "mountPath": path}]}


@pytest.mark.parametrize(
    ("implementation", "variables", "program"),
    [
        ("OpenMPI", {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"}, "/etc/mpi/ssh:ssh"),
        ("Intel", {"I_MPI_HYDRA_BOOTSTRAP_EXEC"}, "/etc/mpi/ssh"),
        ("MPICH", {"HYDRA_LAUNCHER_EXEC"}, "/etc/mpi/ssh"),
    ],
)
def test_every_library_is_told_to_call_it(implementation: str, variables: set[str], program: str) -> None:
    job = replace(PI, mpi_implementation=implementation)
    assert agent_environment(job) == dict.fromkeys(variables, program)
    [container] = build_launcher_template(job, BuildOptions())["spec"]["containers"]
    assert {each["name"] for each in container["env"] if each["value"] == program} == variables


@dataclass(frozen=True)
class Case:
    """A job that gets no script."""

    id: str
    job: MPIJob


CASES = [
    Case("no worker to reach", with_workers(PI, 0)),
    Case("the user opted out of the gate, so maybe no shell", with_annotations(PI, {"mpiop.kubeflow.org/wait-for-workers": "false"})),
    Case("the end of the log is to be the message", with_launcher(PI, changed(MPIRUN, terminationMessagePolicy="FallbackToLogsOnError"))),
    Case("the user names a program", with_launcher(PI, changed(MPIRUN, env=[{"name": "OMPI_MCA_plm_rsh_agent", "value": "rsh"}]))),
    Case("the launcher's own mount covers it", with_launcher(PI, changed(MPIRUN, **mounting("/etc/mpi")))),
    Case("the workers' own mount covers it", with_worker(PI, changed(SSHD, **mounting("/etc/mpi/")))),
    Case("the workers' own mount above covers it", with_worker(PI, changed(SSHD, **mounting("/etc")))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_who_gets_none(case: Case) -> None:
    pods: list[Any] = [build_launcher_template(case.job, BuildOptions())]
    pods += [build_worker_pod(case.job, 0, BuildOptions())] if case.job.worker else []
    assert agent_environment(case.job) == {}
    for pod in pods:
        assert ANNOTATION not in pod["metadata"]["annotations"]
        assert not [each for each in pod["spec"]["containers"][0]["env"] if each["value"].startswith("/etc/mpi/ssh:")]


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
def test_it_is_mounted_where_it_is_called(implementation: str) -> None:
    job = replace(PI, mpi_implementation=implementation)
    launcher, worker = build_launcher_template(job, BuildOptions())["spec"], build_worker_pod(job, 0, BuildOptions()).get("spec", {})
    [projected] = [volume["projected"] for volume in launcher["volumes"] if volume["name"] == "mpi-job-config"]
    assert ITEM in projected["sources"][1]["downwardAPI"]["items"]
    [shown] = [volume["downwardAPI"] for volume in worker["volumes"] if volume["name"] == "mpi-ssh-config"]
    assert ITEM in shown["items"]
    for pod in (launcher, worker):
        assert "/etc/mpi" in {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}


@pytest.fixture
def message(tmp_path: Path) -> Path:
    """The container's termination message, an empty file as the kubelet makes it."""
    path = tmp_path / "termination log"
    path.touch()
    return path


def run(job: MPIJob, message: Path, *arguments: str, worker: bool = False) -> str:
    """Run the script with an ssh that prints its arguments, one a line; return what it printed."""
    pod: Any = build_worker_pod(job, 0, BuildOptions()) if worker else build_launcher_template(job, BuildOptions())
    script, ssh = message.parent / "script", message.parent / "ssh"
    script.write_text(pod["metadata"]["annotations"][ANNOTATION])
    ssh.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    ssh.chmod(0o755)
    environment = {"PATH": f"{message.parent}:/usr/bin:/bin"}
    return subprocess.run(["/bin/sh", str(script), *arguments], env=environment, capture_output=True, text=True, check=True).stdout


def test_it_leaves_its_mark_once_and_is_ssh(message: Path) -> None:
    job = with_launcher(PI, changed(MPIRUN, terminationMessagePath=str(message)))
    for _ in range(2):
        assert run(job, message, "-x", "w 0", "a;b") == "-x\nw 0\na;b\n"
    assert message.read_text() == f"{MARK}\n"


def test_many_at_once_leave_one_mark(message: Path) -> None:
    run(with_launcher(PI, changed(MPIRUN, terminationMessagePath=str(message))), message)  # makes the files
    command, environment = ["/bin/sh", "-c", "read go; . ./script"], {"PATH": f"{message.parent}:/usr/bin:/bin"}
    for _ in range(20):
        message.write_text("")
        with contextlib.ExitStack() as stack:
            start = functools.partial(subprocess.Popen[bytes], command, cwd=message.parent, env=environment, stdin=subprocess.PIPE)
            callers = [stack.enter_context(start(stdout=subprocess.DEVNULL)) for _ in range(8)]
            for caller in callers:
                assert caller.stdin is not None
                caller.stdin.close()  # lets it go
        assert [caller.returncode for caller in callers] == [0] * 8
        assert message.read_text() == f"{MARK}\n"


def test_a_message_of_the_program_stays(message: Path) -> None:
    message.write_text("my own")
    run(with_launcher(PI, changed(MPIRUN, terminationMessagePath=str(message))), message)
    assert message.read_text() == "my own"


def test_a_message_that_cannot_be_written_stops_nothing(message: Path) -> None:
    job = with_launcher(PI, changed(MPIRUN, terminationMessagePath=str(message / "nowhere")))
    assert run(job, message, "w0") == "w0\n"


@pytest.mark.parametrize(
    ("arguments", "printed", "called"),
    [
        (("-x", "-o", "ConnectionAttempts=10", "pi-launcher.pi.default.svc", "echo", "a  b;", "echo $((1 + 1))"), "a b\n2\n", False),
        (("pi-launcher", "echo here"), "here\n", False),
        (("pi-worker-0", "proxy", "--upstream", "pi-launcher"), "pi-worker-0\nproxy\n--upstream\npi-launcher\n", True),
        (("-l", "pi-launcher", "pi-worker-0"), "-l\npi-launcher\npi-worker-0\n", True),
        (("pi-launcher-2",), "pi-launcher-2\n", True),
    ],
)
def test_a_launcher_that_works_too_reaches_itself_without_ssh(
    arguments: tuple[str, ...], printed: str, message: Path, *, called: bool
) -> None:
    job = replace(with_launcher(PI, changed(MPIRUN, terminationMessagePath=str(message))), run_launcher_as_worker=True)
    assert run(job, message, *arguments) == printed
    assert bool(message.read_text()) == called


def test_on_a_worker_it_is_ssh_and_nothing_else(message: Path) -> None:
    job = with_worker(PI, changed(SSHD, terminationMessagePath=str(message)))
    assert run(job, message, "w0", worker=True) == "w0\n"
    assert not message.read_text()
