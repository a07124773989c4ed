"""Slots of a worker by its resources (docs/jobs.md), and annotations that are wrong."""

import re
from pathlib import Path

import pytest

from e2e.clusters import IS_CURRENT
from e2e.jobs import condition, held, is_true, launcher_container, launcher_pod, let_run, pi_job, until_true
from e2e.kubectl import Kubectl
from e2e.plugin import new_tool
from e2e.stand_ins import advertised
from mpiop.kube.resources import MPIJOBS

GPU = "amd.com/gpu"


@pytest.mark.skipif(IS_CURRENT, reason="the user's own nodes are not to claim anything")
def test_slots_are_the_gpus_of_a_worker(namespace: Kubectl, cluster: Kubectl, tmp_path: Path) -> None:
    job = pi_job(workers=1)
    job["metadata"]["annotations"] = {"mpiop.kubeflow.org/slots": "Auto"}
    launcher_container(job)["args"] = ["hostname"]
    [worker] = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    worker["resources"] = {"limits": {GPU: 3}}
    with advertised(cluster, GPU, 3):
        namespace.apply(held(job))
        launcher = launcher_pod(namespace)
        until_true(namespace, "pi", "Running")
        described = new_tool(namespace, tmp_path).run("describe", "pi")
        let_run(namespace, launcher)
        until_true(namespace, "pi", "Succeeded")
    assert re.search(r"^  pi-worker-0 .* 0-2$", described, re.MULTILINE), described
    assert namespace.run("logs", "job/pi-launcher").split() == ["pi-worker-0"] * 3
    header, row = namespace.run("get", "mpijob", "pi", "-o", "wide").splitlines()
    assert row[header.index("SLOTS") :].split()[0] == "3"


def test_annotations_with_other_values_are_reported(namespace: Kubectl) -> None:
    job = pi_job()
    job["metadata"]["annotations"] = {"mpiop.kubeflow.org/slots": "auto", "mpiop.kubeflow.org/shm": "8 GB"}
    namespace.apply(job)
    message = condition(namespace.until_one(MPIJOBS, "pi", lambda found: is_true(found, "Stalled")), "Stalled")["message"]
    assert 'metadata.annotations[mpiop.kubeflow.org/slots]: Unsupported value: "auto": supported values: "Auto"' in message
    assert 'metadata.annotations[mpiop.kubeflow.org/shm]: Invalid value: "8 GB": must be a quantity' in message
    namespace.run("annotate", "mpijob", "pi", "--overwrite", "mpiop.kubeflow.org/slots=Auto", "mpiop.kubeflow.org/shm=128Mi")
    until_true(namespace, "pi", "Succeeded")
