"""The script and the program that `mpirun` calls for ssh, next to what is the user's: log files, variables, PATH.

And a daemon that is killed: MPIOP_E2E_RUNS repeats that.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from e2e.jobs import (
    LAUNCHER,
    RUNS,
    has_ended,
    is_true,
    launcher_container,
    launcher_pod,
    let_workers_come,
    pi_job,
    until_launcher_has_waited,
    until_true,
    with_script,
    without_workers_yet,
)
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import plain_job, sshd_job
from mpiop.kube.resources import MPIJOBS

IMAGES: Final = ("agent", "plain-openmpi", "plain-openmpi5")
LOG_IN_FILE: Final = """
exec 3>&1 >/tmp/run.log 2>&1
echo 'run 4711 begins'
"$@"
echo 'run 4711 ends'
cat /tmp/run.log >&3
"""
HAS_WAITED: Final = "until grep -q 'no address for 20 s' /tmp/run.log; do sleep 0.2; done"
POOR_PATH: Final = 'mkdir /tmp/bin; ln -s /usr/bin/ssh /usr/bin/orted /tmp/bin; PATH=/tmp/bin; exec /usr/bin/"$@"'
KILL_DAEMON: Final = 'for p in /proc/[0-9]*; do read -r name <$p/comm && [ "$name" = prted ] && kill -9 "${p#/proc/}"; done; exit 0'
OWN_AGENT: Final = '#!/bin/sh\necho "my own agent runs" >&2\nexec ssh "$@"\n'


def log_of(here: Kubectl) -> list[str]:
    """Return the lines of the launcher when the job `pi` has succeeded."""
    until_true(here, "pi", "Succeeded", timeout_seconds=180)
    return here.run("logs", f"--selector={LAUNCHER}", "--tail=-1").splitlines()


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("job_of", [sshd_job, plain_job])
def test_a_log_file_of_the_users_has_all_lines_in_order(namespace: Kubectl, job_of: Callable[..., Obj]) -> None:
    """Katib and others let the first process write to a file: `/proc/1/fd/2` leads to it then."""
    namespace.apply(without_workers_yet(with_script(job_of("openmpi", "pi", workers=2), LOG_IN_FILE)))
    launcher = launcher_pod(namespace, "pi")
    namespace.run("exec", launcher, "--", "sh", "-c", HAS_WAITED)
    let_workers_come(namespace, "pi")
    first, *lines, last = log_of(namespace)
    assert (first, last) == ("run 4711 begins", "run 4711 ends")
    waits = [line for line in lines if "waiting for pi-worker-" in line]
    assert len(waits) >= 4, "two hosts, after 10 s and after 20 s"
    assert all(line.endswith("the operator publishes it once all workers are Ready") for line in waits)
    assert any("pi is" in line.lower() for line in lines), lines
    assert not any("\0" in line for line in lines)


def with_own_agent(source: Mapping[str, Obj]) -> Obj:
    """Return a job whose launcher has its variables from the source, and a program `/opt/agent/myssh`."""
    job = pi_job("pi", workers=1)
    launcher_container(job)["args"] = ["-n", "1", "/home/mpiuser/pi", "1000"]
    for role in job["spec"]["mpiReplicaSpecs"].values():
        pod = role["template"]["spec"]
        pod["volumes"] = [{"name": "agent", "configMap": {"name": "agent", "defaultMode": 0o755}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "agent", "mountPath": "/opt/agent"}]
    launcher_container(job)["envFrom"] = [source]
    return job


@pytest.mark.parametrize(
    ("source", "is_called"),
    [
        ({"configMapRef": {"name": "settings"}}, True),
        ({"secretRef": {"name": "settings"}}, True),
        ({"prefix": "OMPI_MCA_plm_", "configMapRef": {"name": "short"}}, True),
        ({"configMapRef": {"name": "other"}}, False),
    ],
)
def test_variables_that_the_user_sets_by_envFrom_are_obeyed(namespace: Kubectl, source: Mapping[str, Obj], is_called: bool) -> None:  # noqa: FBT001
    namespace.run("create", "configmap", "agent", f"--from-literal=myssh={OWN_AGENT}")
    namespace.run("create", "configmap", "other", "--from-literal=A=1")
    namespace.run("create", "configmap", "short", "--from-literal=rsh_agent=/opt/agent/myssh")
    for kind in (["configmap"], ["secret", "generic"]):
        namespace.run("create", *kind, "settings", "--from-literal=OMPI_MCA_plm_rsh_agent=/opt/agent/myssh")
    namespace.apply({**with_own_agent(source), "spec": {**with_own_agent(source)["spec"], "launcherCreationPolicy": "WaitForWorkersReady"}})
    assert ("my own agent runs" in log_of(namespace)) == is_called


def test_a_PATH_without_the_programs_of_the_script(namespace: Kubectl) -> None:
    """As in an image in which /bin is not /usr/bin. It looked for `sleep` 130,000 times, and each time wrote a line."""
    namespace.apply(without_workers_yet(with_script(pi_job("pi", workers=2), POOR_PATH)))
    until_launcher_has_waited(namespace, "pi", 20)
    let_workers_come(namespace, "pi")
    log = log_of(namespace)
    assert not [line for line in log if "not found" in line]
    assert len(log) < 100


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("attempt", range(RUNS))
def test_open_mpi_5_does_not_succeed_without_a_daemon(namespace: Kubectl, attempt: int) -> None:
    """Its `mpirun` exits with 0 as soon as it sees that the connection to a daemon has ended. With one worker it waits for no other."""
    job = plain_job("openmpi5", "pi", workers=1 + attempt % 2)
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    launcher_container(job)["args"] = ["sh", "-c", "echo runs; sleep 600"]
    namespace.apply(job)
    with namespace.following(launcher_pod(namespace, "pi"), timeout_seconds=60) as lines:
        assert any("runs" in line for line in lines)
    namespace.run("exec", "pi-worker-0", "--", "sh", "-c", KILL_DAEMON)
    ended = namespace.until_one(MPIJOBS, "pi", has_ended)
    assert is_true(ended, "Failed"), namespace.run("logs", f"--selector={LAUNCHER}", "--tail=-1")
