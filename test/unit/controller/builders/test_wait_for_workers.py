"""Where the launcher's gate stands and what it is made of; what it does is in test_wait_for_workers_script."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from example_jobs import PI, with_annotations, with_launcher, with_workers
from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.launcher_job import build_launcher_template
from mpiop.controller.builders.wait_for_workers import SCRIPT

GATE = """
name: wait-for-workers
image: example.com/pi
imagePullPolicy: Always
envFrom:
- configMapRef: {name: settings}
securityContext: {runAsUser: 1000}
command: [/bin/sh, -c, SCRIPT]
args:
- wait-for-workers
- pi-launcher.pi.default.svc.example.com
- /etc/mpi/hostfile
- /etc/mpi-gate/workers-ready
- "120"
- "120"
- /dev/termination-log
- "true"
resources:
  requests: {cpu: "1", memory: 1Gi, ephemeral-storage: 2Gi}
  limits: {memory: 2Gi}
volumeMounts:
- {name: data, mountPath: /data, subPath: a}
- {name: ssh-auth, mountPath: /root/.ssh}
- {name: mpi-job-config, mountPath: /etc/mpi}
- {name: mpi-job-gate, mountPath: /etc/mpi-gate}
"""
CONTAINER = """
name: launcher
image: example.com/pi
imagePullPolicy: Always
command: [mpirun]
args: [/pi]
workingDir: /work
envFrom:
- configMapRef: {name: settings}
securityContext: {runAsUser: 1000}
resources:
  requests: {cpu: "1", memory: 1Gi, ephemeral-storage: 2Gi, nvidia.com/gpu: 1, hugepages-2Mi: 4Mi}
  limits: {memory: 2Gi, nvidia.com/gpu: 1, hugepages-2Mi: 4Mi}
  claims: [{name: gpu}]
volumeMounts:
- {name: data, mountPath: /data, subPath: a}
volumeDevices:
- {name: disk, devicePath: /dev/disk}
ports: [{containerPort: 80}]
livenessProbe: {exec: {command: ["true"]}}
lifecycle: {postStart: {exec: {command: ["true"]}}}
"""


def launcher(job: MPIJob, *, domain: str = "") -> dict[str, Any]:
    return build_launcher_template(job, BuildOptions(cluster_domain=domain))


def gates(job: MPIJob) -> list[str]:
    return [container["name"] for container in launcher(job)["spec"].get("initContainers") or ()]


def test_the_gate_sees_what_the_launcher_sees_and_takes_no_more_of_the_node() -> None:
    job = with_launcher(PI, {"spec": {"containers": [yaml.safe_load(CONTAINER)]}})
    pod = launcher(job, domain="example.com")
    (gate,) = pod["spec"]["initContainers"]
    assert gate.pop("env") == pod["spec"]["containers"][0]["env"]
    wanted = yaml.safe_load(GATE)
    wanted["command"][2] = SCRIPT
    assert gate == wanted


@pytest.mark.parametrize("implementation", [c.MPICH, c.INTEL])
def test_where_daemons_look_for_the_launcher_each_host_is_asked_for_its_name(implementation: str) -> None:
    (gate,) = launcher(replace(PI, mpi_implementation=implementation), domain="example.com")["spec"]["initContainers"]
    assert gate["args"][-1] == "getent hosts pi-launcher.pi.default.svc.example.com"


def test_the_operators_word_reaches_the_gate_by_an_annotation() -> None:
    pod = launcher(PI)
    assert pod["metadata"]["annotations"]["mpiop.kubeflow.org/workers-ready"] == "0"
    assert pod["spec"]["volumes"][-1] == yaml.safe_load("""
name: mpi-job-gate
downwardAPI:
  items:
  - path: workers-ready
    fieldRef: {fieldPath: "metadata.annotations['mpiop.kubeflow.org/workers-ready']"}
""")


def test_the_launcher_itself_does_not_see_the_gates_volume() -> None:
    (container,) = launcher(PI)["spec"]["containers"]
    assert "mpi-job-gate" not in {mount["name"] for mount in container["volumeMounts"]}


def test_a_template_cannot_open_the_gate() -> None:
    metadata = {"annotations": {"mpiop.kubeflow.org/workers-ready": "2"}}
    pod = launcher(with_launcher(PI, {"metadata": metadata, **PI.launcher.template}))
    assert pod["metadata"]["annotations"]["mpiop.kubeflow.org/workers-ready"] == "0"


def test_the_gate_takes_no_gpu_even_when_the_launcher_may() -> None:
    job = with_launcher(
        PI, {"spec": {"containers": [{"name": "l", "image": "i", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]}]}}
    )
    (gate,) = launcher(job)["spec"]["initContainers"]
    values = {variable["name"]: variable.get("value") for variable in gate["env"]}
    assert values["NVIDIA_VISIBLE_DEVICES"] == ""
    assert "resources" not in gate


def test_the_users_init_containers_come_first() -> None:
    template = {"spec": {**PI.launcher.template["spec"], "initContainers": [{"name": "fetch", "image": "i"}]}}
    assert gates(with_launcher(PI, template)) == ["fetch", "wait-for-workers"]


@pytest.mark.parametrize(
    ("annotations", "has_gate"),
    [
        ({}, True),
        ({"mpiop.kubeflow.org/wait-for-workers": "true"}, True),
        ({"mpiop.kubeflow.org/wait-for-workers": "false"}, False),
        ({"mpiop.kubeflow.org/wait-for-workers": " False"}, False),
    ],
)
def test_the_user_may_opt_out(annotations: dict[str, str], has_gate: bool) -> None:  # noqa: FBT001 - a column of the table
    job = with_annotations(PI, annotations)
    assert gates(job) == ["wait-for-workers"] * has_gate
    assert ("mpiop.kubeflow.org/workers-ready" in launcher(job)["metadata"]["annotations"]) is has_gate


def test_without_workers_there_is_nothing_to_wait_for() -> None:
    assert gates(with_workers(PI, 0)) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"initContainers": [{"name": "wait-for-workers", "image": "mine"}]},
        {"containers": [{"name": "wait-for-workers", "image": "mine"}]},
        {"volumes": [{"name": "mpi-job-gate", "emptyDir": {}}]},
    ],
    ids=["an init container", "a container", "a volume"],
)
def test_a_name_that_the_user_took_stays_theirs(spec: dict[str, Any]) -> None:
    template = {"spec": {**PI.launcher.template["spec"], **spec}}
    pod = launcher(with_launcher(PI, template))
    assert "mpiop.kubeflow.org/workers-ready" not in pod["metadata"]["annotations"]
    assert pod["spec"].get("initContainers") == spec.get("initContainers")
