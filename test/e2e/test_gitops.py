"""The health of jobs as GitOps tools compute it: cli-utils' own kstatus, and docs/gitops.md's script for Argo CD in its Lua."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from e2e.jobs import (
    condition,
    held,
    is_true,
    launcher_container,
    launcher_pod,
    let_run,
    let_workers_come,
    pi_job,
    state,
    until_true,
    without_workers_yet,
)
from e2e.kubectl import Kubectl, Obj
from e2e.neighbours import ROOT, build_program
from mpiop.kube.resources import MPIJOBS

LABEL = "example.com/pool"


class Tools:
    """The program of hack/embedded/go/gitops."""

    def __init__(self, folder: Path) -> None:
        self._program = build_program("gitops")
        self._script = folder / "health.lua"
        [script] = re.findall(r"```lua\n(.*?)```", (ROOT / "docs/gitops.md").read_text(encoding="utf-8"), re.DOTALL)
        self._script.write_text(script, encoding="utf-8")

    def health(self, job: Obj) -> tuple[str, str]:
        """Return the health of `job` for kstatus, and for Argo CD."""
        return self._run(job, "kstatus")["status"], self._run(job, "argocd", str(self._script))["status"]

    def message(self, job: Obj) -> str:
        """Return what kstatus reports with its health."""
        return self._run(job, "kstatus")["message"]

    def _run(self, job: Obj, *arguments: str) -> dict[str, str]:
        command = [str(self._program), *arguments]
        shown: dict[str, str] = json.loads(
            subprocess.run(command, input=json.dumps(job), check=True, capture_output=True, text=True).stdout
        )
        return shown


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(tmp_path_factory.mktemp("gitops"))


WAITING = ("InProgress", "Progressing")


def edited(job: Obj) -> Obj:
    """Return the job as it is stored after an edit that the operator has not seen."""
    return {**job, "metadata": {**job["metadata"], "generation": job["metadata"]["generation"] + 1}}


def test_a_job_is_in_progress_until_it_runs_and_current_then_and_kubectl_waits_for_both(namespace: Kubectl, tools: Tools) -> None:
    namespace.apply(without_workers_yet(held(pi_job())))
    starts = namespace.until_one(MPIJOBS, "pi", lambda job: condition(job, "Reconciling").get("reason") == "Starting")
    assert tools.health(starts) == WAITING
    let_workers_come(namespace, "pi")
    namespace.run("wait", "mpijob/pi", "--for=condition=Running", "--timeout=60s")
    runs = namespace.read(MPIJOBS, "pi")
    assert tools.health(runs) == ("Current", "Healthy")
    assert "observedGeneration" not in runs["status"]
    let_run(namespace, launcher_pod(namespace, "pi"))
    namespace.run("wait", "mpijob/pi", "--for=condition=Finished", "--timeout=60s")
    assert tools.health(namespace.read(MPIJOBS, "pi")) == ("Current", "Healthy")


def test_a_job_that_waits_for_a_node_is_in_progress_until_it_has_one(namespace: Kubectl, tools: Tools) -> None:
    node = namespace.run("get", "nodes", "-o", "name").splitlines()[0]
    job = pi_job()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {LABEL: namespace.namespace}
    namespace.apply(job)
    try:
        waits = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "Unschedulable", timeout_seconds=30)
        assert tools.health(waits) == WAITING
        assert "autoscaler may add a node" in tools.message(waits)
        assert waits["status"]["observedGeneration"] == waits["metadata"]["generation"]
        assert tools.health(edited(waits)) == WAITING
        assert not is_true(waits, "Stalled")
        namespace.run("label", node, f"{LABEL}={namespace.namespace}", "--overwrite")
        done = until_true(namespace, "pi", "Succeeded")
    finally:
        namespace.run("label", node, f"{LABEL}-")
    assert tools.health(done) == ("Current", "Healthy")


def test_a_job_that_no_operator_has_seen_is_in_progress(namespace: Kubectl, tools: Tools) -> None:
    job = pi_job()
    job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    namespace.apply(job)
    assert tools.health(namespace.read(MPIJOBS, "pi")) == WAITING


def test_a_failed_job_is_failed_with_its_cause(namespace: Kubectl, tools: Tools) -> None:
    job = pi_job(workers=1)
    launcher_container(job)["command"] = ["/bin/sh", "-c", "exit 3"]
    job["spec"].setdefault("runPolicy", {})["backoffLimit"] = 0
    namespace.apply(job)
    namespace.run("wait", "mpijob/pi", "--for=condition=Finished", "--timeout=60s")
    failed = namespace.read(MPIJOBS, "pi")
    assert is_true(failed, "Failed")
    assert tools.health(failed) == ("Failed", "Degraded")
    assert tools.message(failed) == condition(failed, "Failed")["message"]


def test_a_suspended_job_is_current_and_an_invalid_one_failed_until_it_is_edited(namespace: Kubectl, tools: Tools) -> None:
    job = pi_job(workers=1)
    job["metadata"]["annotations"] = {"mpiop.kubeflow.org/slots": "auto"}
    namespace.apply(job)
    invalid = until_true(namespace, "pi", "Stalled")
    assert tools.health(invalid) == ("Failed", "Degraded")
    assert tools.health(edited(invalid)) == WAITING
    namespace.run("annotate", "mpijob", "pi", "--overwrite", "mpiop.kubeflow.org/slots=Auto")
    namespace.run("patch", "mpijob", "pi", "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":true}}}')
    suspended = until_true(namespace, "pi", "Suspended")
    assert tools.health(suspended) == ("Current", "Suspended")
    assert "observedGeneration" not in suspended["status"]
