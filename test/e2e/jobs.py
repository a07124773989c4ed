"""MPIJobs for the tests: the example's, changed in the one thing that a test is about."""

import contextlib
import copy
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from e2e.kubectl import Kubectl, Obj
from mpiop.kube.resources import EVENTS, MPIJOBS, PODS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "v2beta1"
PI = EXAMPLES / "pi" / "pi.yaml"
LAUNCHER = "training.kubeflow.org/job-role=launcher"
WORKER = "training.kubeflow.org/job-role=worker"
DONE_SECONDS = 90
RELEASED = "/hold/released"
RUNS = int(os.environ.get("MPIOP_E2E_RUNS") or 1)
"""How often tests repeat their jobs."""


def pi_job(name: str = "pi", *, workers: int | None = None) -> Obj:
    """Return the example's MPIJob under `name`."""
    job: Obj = yaml.safe_load(PI.read_text(encoding="utf-8"))
    job["metadata"] = {"name": name}
    if workers is not None:
        job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    return job


def launcher_container(job: Obj) -> Obj:
    container: Obj = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    return container


def annotated(job: Obj, **annotations: str) -> Obj:
    """Return `job` with annotations of ours."""
    job["metadata"]["annotations"] = {f"mpiop.kubeflow.org/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return job


@contextlib.contextmanager
def priorities(cluster: Kubectl, low: str, high: str) -> Iterator[None]:
    """Create two PriorityClasses, one lower and one higher than the default, and delete them at the end."""
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    cluster.apply(*({**api, "metadata": {"name": name}, "value": value} for name, value in ((low, -1000), (high, 1000))))
    try:
        yield
    finally:
        cluster.run("delete", "priorityclass", low, high)


def with_script(job: Obj, script: str) -> Obj:
    """Return `job` with a shell script in the launcher's place; `"$@"` in it is what the launcher ran."""
    changed = copy.deepcopy(job)
    container = launcher_container(changed)
    ran = [*container.get("command", []), *container.get("args", [])]
    container.pop("args", None)
    container["command"] = ["/bin/sh", "-c", script, "launcher", *ran]
    return changed


def held(job: Obj) -> Obj:
    """Return `job` whose launcher waits until `let_run` lets it run, and always after that, though its container is restarted."""
    changed = with_script(job, f'trap "exit 143" TERM; until [ -e {RELEASED} ]; do sleep 0.1; done; exec "$@"')
    pod = changed["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    pod["volumes"] = [*pod.get("volumes", []), {"name": "hold", "emptyDir": {}}]
    container = launcher_container(changed)
    container["volumeMounts"] = [*container.get("volumeMounts", []), {"name": "hold", "mountPath": str(Path(RELEASED).parent)}]
    return changed


def let_run(here: Kubectl, launcher: str) -> None:
    here.run("exec", launcher, "--", "touch", RELEASED)


def without_workers_yet(job: Obj) -> Obj:
    """Return `job` whose workers get no node until `let_workers_come`."""
    changed = copy.deepcopy(job)
    changed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["schedulingGates"] = [{"name": "mpiop.test/not-yet"}]
    return changed


def let_workers_come(here: Kubectl, name: str) -> None:
    """Let the workers of the job `name` have their nodes."""
    desired = here.read(MPIJOBS, name)["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    labels = f"{WORKER},training.kubeflow.org/job-name={name}"
    for pod in here.until(PODS, lambda pods: len(pods) == desired, labels=labels):
        here.run("patch", "pod", pod["metadata"]["name"], "--type=merge", '--patch={"spec": {"schedulingGates": []}}')


def until_launcher_has_waited(here: Kubectl, name: str, seconds: int) -> str:
    """Return the name of the launcher Pod of the job `name` when its log reports that it has waited so long for a worker."""
    launcher = launcher_pod(here, name)
    with here.following(launcher, timeout_seconds=seconds + 120) as lines:
        waits = re.compile(rf"waiting for {name}-worker-\d+\S*: no address for (\d+) s")
        assert any(int(found[1]) >= seconds for line in lines if (found := waits.match(line))), f"{launcher} waited less than {seconds} s"
    return launcher


def launcher_pod(here: Kubectl, name: str = "", *, timeout_seconds: float = 60) -> str:
    """Return the name of the one launcher Pod as soon as it runs: that of the job `name`, by default the only one of the namespace."""
    labels = f"{LAUNCHER},training.kubeflow.org/job-name={name}" if name else LAUNCHER
    pods = here.until(PODS, lambda pods: [phase(pod) for pod in pods] == ["Running"], labels=labels, timeout_seconds=timeout_seconds)
    launcher: str = pods[0]["metadata"]["name"]
    return launcher


def running_launcher(here: Kubectl, name: str = "pi", *, but: Collection[str] = ()) -> str:
    """Return the name of the one launcher Pod of the job that runs, among others that have ended or have the UIDs `but`."""

    def candidates(pods: list[Obj]) -> list[Obj]:
        return [pod for pod in pods if phase(pod) == "Running" and pod["metadata"]["uid"] not in but]

    labels = f"{LAUNCHER},training.kubeflow.org/job-name={name}"
    [found] = candidates(here.until(PODS, lambda pods: len(candidates(pods)) == 1, labels=labels))
    return str(found["metadata"]["name"])


def last_launcher_log(here: Kubectl, name: str = "pi") -> list[str]:
    """Return the lines of the job's newest launcher Pod; `kubectl logs job/…` shows the oldest, perhaps of an attempt before a restart."""
    launchers = here.read_all(PODS, labels=f"{LAUNCHER},training.kubeflow.org/job-name={name}")
    newest = max(launchers, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return here.run("logs", newest["metadata"]["name"]).splitlines()


def evict(here: Kubectl, pod: str) -> None:
    """Ask the Eviction API to take a Pod away, as `kubectl drain` does."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": here.namespace}}
    here.run("create", "--raw", f"/api/v1/namespaces/{here.namespace}/pods/{pod}/eviction", "-f", "-", stdin=json.dumps(eviction))


def phase(pod: Obj) -> str:
    return str(pod["status"].get("phase", ""))


def state(job: Obj) -> str:
    """Return what `kubectl get mpijobs` shows as STATE."""
    return str(job.get("status", {}).get("summary", {}).get("state", ""))


def condition(obj: Obj, type_: str) -> Obj:
    """Return the condition of that type, {} when there is none."""
    conditions: Iterable[Obj] = obj.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def is_true(obj: Obj, type_: str) -> bool:
    """Return whether the condition of that type is True."""
    return bool(condition(obj, type_).get("status") == "True")


def has_ended(job: Obj) -> bool:
    return is_true(job, "Succeeded") or is_true(job, "Failed")


def restarts(pod: Obj) -> int:
    """Return how often the containers of `pod` were started again."""
    return sum(each["restartCount"] for group in ("initContainerStatuses", "containerStatuses") for each in pod["status"].get(group, ()))


def waiting_for(job: Obj) -> Obj:
    """Return the condition that names why the job waits, Stalled or Reconciling; {} when there is none."""
    rows = (condition(job, type_) for type_ in ("Stalled", "Reconciling"))
    return next((row for row in rows if row.get("status") == "True" and row["reason"] != "Starting"), {})


def until_waiting(here: Kubectl, name: str) -> Obj:
    """Return the condition that names why the job waits, as soon as there is one."""
    return waiting_for(here.until_one(MPIJOBS, name, lambda job: bool(waiting_for(job)), timeout_seconds=DONE_SECONDS))


def edit(here: Kubectl, **spec: Any) -> None:
    """Change the spec of the job `pi`."""
    here.run("patch", "mpijob", "pi", "--type=merge", "--patch", json.dumps({"spec": spec}))


def until_true(here: Kubectl, name: str, type_: str, *, timeout_seconds: float = DONE_SECONDS) -> Obj:
    """Return the MPIJob as soon as its condition `type_` is True."""
    return here.until_one(MPIJOBS, name, lambda job: is_true(job, type_), timeout_seconds=timeout_seconds)


def warnings_about(here: Kubectl, name: str) -> list[Obj]:
    """Return the Warning events of a job."""
    return [event for event in here.read_all(EVENTS) if event["involvedObject"].get("name") == name and event["type"] == "Warning"]
