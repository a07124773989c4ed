"""Why a job failed: a worker was evicted, or the launcher failed, whose last words are kept if the operator may read its log."""

from pathlib import Path

import pytest

from e2e.broken import container, one_worker, with_volume
from e2e.clusters import ROOT
from e2e.jobs import condition, held, until_true
from e2e.kubectl import Kubectl
from e2e.shell import open_shell


def let_logs_be_read(namespace: Kubectl, cluster: Kubectl, folder: Path) -> None:
    """Let the operator read logs in the namespace, as the guide shows."""
    cluster.run("delete", "clusterrole", "mpi-operator-launcher-logs", "--ignore-not-found")
    open_shell(namespace, ROOT, folder / "kubeconfig").follow("docs/troubleshooting.md", "The log of a launcher that is gone")


def test_F69_a_worker_that_its_node_evicts_ends_the_job(namespace: Kubectl) -> None:
    job = held(one_worker("pi"))
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    with_volume(worker, emptyDir={"sizeLimit": "1Mi"})
    write = "trap 'exit 143' TERM; dd if=/dev/zero of=/data/large bs=1M count=8; /usr/sbin/sshd -De -f /home/mpiuser/.sshd_config & wait"
    container(worker)["command"] = ["/bin/sh", "-c", write]
    container(worker).pop("args")
    namespace.apply(job)
    failed = condition(until_true(namespace, "pi", "Failed"), "Failed")
    assert (failed["reason"], failed["message"]) == ("MPIJobEvicted", "1/1 workers are evicted")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_the_last_words_of_a_launcher_outlive_its_pod(policy: str, namespace: Kubectl, cluster: Kubectl, tmp_path: Path) -> None:
    let_logs_be_read(namespace, cluster, tmp_path)
    job = one_worker("pi")
    job["spec"]["runPolicy"] |= {"backoffLimit": 0, "cleanPodPolicy": "All"}
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]
    launcher["restartPolicy"] = policy
    container(launcher)["command"] = ["/bin/sh", "-c", "mpirun -n 1 hostname && echo the solver diverged >&2 && exit 3"]
    container(launcher).pop("args")
    namespace.apply(job)
    failed = until_true(namespace, "pi", "Failed")
    assert failed["status"]["lastFailure"]["log"].endswith("the solver diverged")
    # The kubelet may restart the container once more before the Job controller sees that the limit is reached.
    attempt, *others = failed["status"]["attempts"]
    assert len(others) <= (policy == "OnFailure")
    assert (attempt["number"], attempt["exitCode"], attempt["reason"]) == (1, 3, "Error")
    assert attempt["pod"].startswith("pi-launcher-")
    assert attempt["node"]
    assert condition(failed, "Failed")["message"].endswith("the solver diverged")
