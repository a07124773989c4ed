"""An API server in memory for the Python client and kubectl mpi."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fakes.semantics import merged
from mpiop.api import constants as c
from mpiop.api.annotations import ALLOCATION
from mpiop.client.api import LogOptions, Object
from mpiop.client.errors import ConflictError, NotFoundError
from mpiop.client.progress import is_worker

TAGGED = {"mpiop.kubeflow.org/output": "tagged"}
NOON = "2026-11-25T12:00:00Z"


def stored(name: str = "pi", *, state: str = "", workers: int = 2, annotations: dict[str, str] | None = None, **status: Any) -> Object:
    """Return an MPIJob as stored; `state` is its summary's."""
    summary = {"summary": {"state": state, "workers": f"{workers}/{workers}", "restarts": "0"}} if state else {}
    conditions = [{"type": state, "status": "True", "reason": f"MPIJob{state}", "message": "", "lastTransitionTime": NOON}]
    found = {"conditions": conditions if state in {"Running", "Succeeded", "Failed", "Suspended"} else []}
    own = {"name": "launcher", "image": "pi"}
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": NOON}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": metadata | ({} if annotations is None else {"annotations": dict(annotations)}),
        "spec": {
            "slotsPerWorker": 1,
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [own]}}},
                "Worker": {"replicas": workers, "template": {"spec": {"containers": [own]}}},
            },
        },
        "status": found | summary | status,
    }


def allocation(name: str = "dev", **fields: Any) -> Object:
    """Return a job that `kubectl mpi alloc` made, as stored."""
    return stored(name, annotations={ALLOCATION.name: "true"}, **fields)


def pod_spec(job: Object, role: str = "Launcher") -> Object:
    """Return the spec of the Pods with a role."""
    spec: Object = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    return spec


def container(job: Object, role: str = "Launcher") -> Object:
    """Return the container of the Pods with a role."""
    [found] = pod_spec(job, role)["containers"]
    return found


def pod(name: str, *, job: str = "", role: str = "worker", node: str = "node-1", ready: bool = True, **state: Any) -> Object:
    """Return a Pod, by default of every job; `state` is that of its container, `running` where nothing is reported."""
    conditions = [{"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": NOON}]
    conditions.append({"type": "Ready", "status": "True" if ready else "False"})
    row = {"name": role, "restartCount": 0, "state": state or {"running": {"startedAt": NOON}}}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": NOON,
            "labels": {"training.kubeflow.org/job-role": role} | ({c.LABEL_JOB_NAME: job} if job else {}),
        },
        "spec": {"nodeName": node, "containers": [{"name": role}]} if node else {"containers": [{"name": role}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions, "containerStatuses": [row] if node else []},
    }


def raises(error: BaseException) -> Callable[[], None]:
    def step() -> None:
        raise error

    return step


class FakeApi:
    """Keeps jobs, Pods, Events, ConfigMaps and logs; each call of `step` comes before a job is read.

    test/contract/test_python_client.py compares it with the real code. It differs in two ways: a patch is answered and not kept, and a
    dry run is not refused because of a job of the same name.
    """

    def __init__(self, *jobs: Object) -> None:
        self.namespace = "team"
        self.stored: dict[str, Object] = {job["metadata"]["name"]: job for job in jobs}
        self.all_pods: list[Object] = []
        self.all_events: list[Object] = []
        self.config_maps: dict[str, Object | None] = {}
        self.logs: dict[str, list[bytes | Exception]] = {}
        self.answers: dict[str, Object | BaseException] = {}
        self.forbidden: set[str] = set()
        self.requests: list[tuple[Any, ...]] = []
        self.steps: list[Callable[[], None]] = []

    def ends(self, state: str, **status: Any) -> None:
        """Let each job that is created have ended."""
        create = self.create_job

        def created(job: Object, *, is_dry_run: bool = False) -> Object:
            made = create(job, is_dry_run=is_dry_run)
            if not is_dry_run:
                found = stored(made["metadata"]["name"], state=state, **status)
                found["metadata"]["annotations"] = made["metadata"].get("annotations", {})
                self.stored[found["metadata"]["name"]] = found
            return made

        self.create_job = created  # type: ignore[method-assign]

    def within(self, namespace: str) -> "FakeApi":
        other = copy.copy(self)
        other.namespace = namespace
        return other

    def job(self, name: str) -> Object:
        if self.steps:
            self.steps.pop(0)()
        if name not in self.stored or self.stored[name]["metadata"].get("namespace", self.namespace) != self.namespace:
            raise NotFoundError(f"job {self.namespace}/{name}: not found")
        return copy.deepcopy(self.stored[name])

    def jobs(self, *, everywhere: bool = False) -> Sequence[Object]:
        self.requests.append(("list", everywhere))
        return list(self.stored.values())

    def create_job(self, job: Object, *, is_dry_run: bool = False) -> Object:
        self.requests.append(("create", job, is_dry_run))
        name = job["metadata"].get("name") or job["metadata"]["generateName"] + "abcde"
        for what in ("create", "dry run" if is_dry_run else f"create {name}"):
            if isinstance(error := self.answers.get(what), BaseException):
                raise error
        if name in self.stored and not is_dry_run:
            raise ConflictError(f"job team/{name}: already exists")
        made = {**job, "metadata": {**job["metadata"], "name": name, "namespace": "team", "uid": f"uid-{name}"}}
        if not is_dry_run:
            self.stored[name] = made
        return made

    def check_pod(self, template: Object) -> None:
        self.requests.append(("check", template))
        if isinstance(error := self.answers.get("check"), BaseException):
            raise error

    def patch_job(self, name: str, patch: Object) -> Object:
        self.requests.append(("patch", name, patch))
        patched: Object = merged(self.job(name), patch)
        return patched

    def delete_job(self, job: Object) -> None:
        name = job["metadata"]["name"]
        self.requests.append(("delete", name))
        if name in self.stored and self.stored[name]["metadata"]["uid"] == job["metadata"]["uid"]:
            del self.stored[name]

    def pods(self, job: str) -> Sequence[Object]:
        """Return the Pods with the labels of a job, which it controls if they name no owners."""
        uid = self.stored[job]["metadata"]["uid"] if job in self.stored else f"uid-{job}"
        worker = {"kind": c.KIND, "name": job, "uid": uid, "controller": True}
        launcher = {"kind": "Job", "name": f"{job}-launcher", "uid": "uid-job", "controller": True}
        return [
            {**found, "metadata": {"ownerReferences": [worker if is_worker(found) else launcher], **found["metadata"]}}
            for found in self.all_pods
            if found["metadata"]["labels"].get(c.LABEL_JOB_NAME, job) == job
        ]

    def pod(self, name: str) -> Object:
        for found in self.all_pods:
            if found["metadata"]["name"] == name:
                return copy.deepcopy(found)
        raise NotFoundError(f"pod team/{name}: not found")

    def events(self, uid: str) -> Sequence[Object]:
        return [event for event in self.all_events if event["involvedObject"].get("uid") == uid]

    def create_config_map(self, config_map: Object) -> Object:
        self.requests.append(("create configmap", config_map))
        name = config_map["metadata"]["generateName"] + "fghij"
        made = {**config_map, "metadata": {**config_map["metadata"], "name": name, "uid": "uid-files"}}
        self.config_maps[name] = made
        return made

    def patch_config_map(self, name: str, patch: Object) -> Object:
        self.requests.append(("patch configmap", name, patch))
        patched: Object = merged(self._config_map(name), patch)
        self.config_maps[name] = patched
        return patched

    def delete_config_map(self, config_map: Object) -> None:
        name = config_map["metadata"]["name"]
        self.requests.append(("delete configmap", name))
        self._config_map(name)
        self.config_maps[name] = None

    def _config_map(self, name: str) -> Object:
        """Return a ConfigMap: one that the test has made, or else an empty one."""
        found = self.config_maps.get(name, {})
        if found is None:
            raise NotFoundError(f"configmap team/{name}: not found")
        return found

    def read_log(self, pod: str, container: str, options: LogOptions) -> Iterator[bytes]:
        self.requests.append(("log", pod, container, options))
        pieces = self.logs.get(pod, [])
        while pieces:
            piece = pieces.pop(0)
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def get(self, path: str) -> Object:
        answer = self.answers.get(path.partition("?")[0], NotFoundError(f"{path}: not found"))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def may(self, verb: str, group: str, resource: str) -> bool:
        del group
        return f"{verb} {resource}" not in self.forbidden
