"""Why a job failed: the condition reports how the launcher ended, in words, and with the end of its log if the operator may read it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.broken import container, one_worker, with_volume
from e2e.clusters import ROOT
from e2e.jobs import condition, held, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.shell import open_shell


def with_launcher(script: str, *, policy: str = "Never") -> Obj:
    """Return a job whose launcher runs the script, once."""
    job = one_worker("pi")
    job["spec"]["runPolicy"] |= {"backoffLimit": 0, "cleanPodPolicy": "All"}
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]
    launcher["restartPolicy"] = policy
    container(launcher)["command"] = ["/bin/sh", "-c", script]
    container(launcher).pop("args")
    return job


def failed_for(namespace: Kubectl, job: Obj) -> tuple[str, str]:
    """Return reason and message of the condition Failed of the job."""
    namespace.apply(job)
    failed = condition(until_true(namespace, "pi", "Failed"), "Failed")
    return failed["reason"], failed["message"]


def let_logs_be_read(namespace: Kubectl, cluster: Kubectl, folder: Path) -> None:
    """Let the operator read logs in the namespace, as the guide shows."""
    cluster.run("delete", "clusterrole", "mpi-operator-launcher-logs", "--ignore-not-found")
    open_shell(namespace, ROOT, folder / "kubeconfig").follow("docs/troubleshooting.md", "The log of a launcher that is gone")


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [  # Kubernetes makes $ of $$
        ("kill -SEGV $$$$", "Error", "exit code 139 (SIGSEGV)"),
        ("kill -TERM $$$$", "Error", "exit code 143 (SIGTERM)"),
        ("tail /dev/zero", "OOMKilled", "exit code 137 (SIGKILL)"),
        ("exit 7", "Error", "exit code 7"),
    ],
    ids=["segfault", "terminated", "memory", "exit"],
)
def test_the_end_of_a_launcher_is_put_in_words(script: str, reason: str, words: str, namespace: Kubectl) -> None:
    job = with_launcher(f"trap - TERM; sh -c '{script}'; exit $?")
    container(job["spec"]["mpiReplicaSpecs"]["Launcher"])["resources"] = {"limits": {"memory": "64Mi"}}
    failed, message = failed_for(namespace, job)
    assert failed == f"BackoffLimitExceeded/{reason}"
    assert words in message


def test_a_job_that_ran_too_long_says_so(namespace: Kubectl) -> None:
    job = held(one_worker("pi"))
    job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 5
    assert failed_for(namespace, job) == ("DeadlineExceeded", "Job was active longer than specified deadline")


def test_F69_a_worker_that_its_node_evicts_ends_the_job(namespace: Kubectl) -> None:
    job = held(one_worker("pi"))
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    with_volume(worker, emptyDir={"sizeLimit": "1Mi"})
    write = "trap 'exit 143' TERM; dd if=/dev/zero of=/data/large bs=1M count=8; /usr/sbin/sshd -De -f /home/mpiuser/.sshd_config & wait"
    container(worker)["command"] = ["/bin/sh", "-c", write]
    container(worker).pop("args")
    assert failed_for(namespace, job) == ("MPIJobEvicted", "1/1 workers are evicted")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_the_last_words_of_a_launcher_outlive_its_pod(policy: str, namespace: Kubectl, cluster: Kubectl, tmp_path: Path) -> None:
    let_logs_be_read(namespace, cluster, tmp_path)
    namespace.apply(with_launcher("mpirun -n 1 hostname && echo the solver diverged >&2 && exit 3", policy=policy))
    failed = until_true(namespace, "pi", "Failed")
    assert failed["status"]["lastFailure"]["log"].endswith("the solver diverged")
    # The kubelet may restart the container once more before the Job controller sees that the limit is reached.
    attempt, *others = failed["status"]["attempts"]
    assert len(others) <= (policy == "OnFailure")
    assert (attempt["number"], attempt["exitCode"], attempt["reason"]) == (1, 3, "Error")
    assert attempt["pod"].startswith("pi-launcher-")
    assert attempt["node"]
    assert condition(failed, "Failed")["message"].endswith("the solver diverged")


@pytest.mark.parametrize(
    ("script", "sshd", "words"),
    [
        ("mpirun -n 5 hostname", (), "There are not enough slots available in the system"),
        ("mpirun -n 1 hostname", ("-o", "AuthorizedKeysFile=/nowhere"), "Permission denied (publickey"),
        ("mpirun -n 1 no-such-program", (), "no-such-program"),
    ],
    ids=["slots", "keys", "program"],
)
def test_what_mpirun_and_ssh_say_last_is_kept(
    script: str, sshd: Sequence[str], words: str, namespace: Kubectl, cluster: Kubectl, tmp_path: Path
) -> None:
    let_logs_be_read(namespace, cluster, tmp_path)
    job = with_launcher(script)
    container(job["spec"]["mpiReplicaSpecs"]["Worker"])["args"] += sshd
    namespace.apply(job)
    assert words in until_true(namespace, "pi", "Failed")["status"]["lastFailure"]["log"]
