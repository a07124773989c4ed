"""An API server in memory for the Python client and kubectl mpi."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mpiop.client.api import LogOptions, Object
from mpiop.client.errors import ClientError, ConflictError, NotFoundError

NOON = "2026-11-25T12:00:00Z"


def stored(name: str = "pi", *, state: str = "", workers: int = 2, **status: Any) -> Object:
    """Return an MPIJob as stored; `state` is its summary's."""
    summary = {"summary": {"state": state, "workers": f"{workers}/{workers}", "restarts": "0"}} if state else {}
    conditions = [{"type": state, "status": "True", "reason": f"MPIJob{state}", "message": "", "lastTransitionTime": NOON}]
    found = {"conditions": conditions if state in {"Running", "Succeeded", "Failed", "Suspended"} else []}
    container = {"name": "launcher", "image": "pi"}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": NOON},
        "spec": {
            "slotsPerWorker": 1,
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [container]}}},
                "Worker": {"replicas": workers, "template": {"spec": {"containers": [container]}}},
            },
        },
        "status": found | summary | status,
    }


def pod(name: str, *, role: str = "worker", node: str = "node-1", ready: bool = True, **state: Any) -> Object:
    """Return a Pod; `state` is that of its container, `running` where nothing is reported."""
    conditions = [{"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": NOON}]
    conditions.append({"type": "Ready", "status": "True" if ready else "False"})
    row = {"name": role, "restartCount": 0, "state": state or {"running": {"startedAt": NOON}}}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": NOON,
            "labels": {"training.kubeflow.org/job-role": role},
        },
        "spec": {"nodeName": node, "containers": [{"name": role}]} if node else {"containers": [{"name": role}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions, "containerStatuses": [row] if node else []},
    }


class FakeApi:
    """Keeps jobs, Pods, Events and logs; each call of `step` comes before a job is read."""

    def __init__(self, *jobs: Object) -> None:
        self.namespace = "team"
        self.stored: dict[str, Object] = {job["metadata"]["name"]: job for job in jobs}
        self.all_pods: list[Object] = []
        self.all_events: list[Object] = []
        self.logs: dict[str, list[bytes | Exception]] = {}
        self.answers: dict[str, Object | ClientError] = {}
        self.forbidden: set[str] = set()
        self.requests: list[tuple[Any, ...]] = []
        self.steps: list[Callable[[], None]] = []

    def ends(self, state: str) -> None:
        """Let each job that is created have ended."""
        create = self.create_job

        def created(job: Object, *, is_dry_run: bool = False) -> Object:
            made = create(job, is_dry_run=is_dry_run)
            self.stored[made["metadata"]["name"]] = stored(made["metadata"]["name"], state=state)
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
        if isinstance(error := self.answers.get("create"), ClientError):
            raise error
        name = job["metadata"].get("name") or job["metadata"]["generateName"] + "abcde"
        if name in self.stored and not is_dry_run:
            raise ConflictError(f"job team/{name}: already exists")
        made = {**job, "metadata": {**job["metadata"], "name": name, "namespace": "team", "uid": f"uid-{name}"}}
        if not is_dry_run:
            self.stored[name] = made
        return made

    def check_pod(self, template: Object) -> None:
        self.requests.append(("check", template))
        if isinstance(error := self.answers.get("check"), ClientError):
            raise error

    def patch_job(self, name: str, patch: Object) -> Object:
        self.requests.append(("patch", name, patch))
        return self.job(name)

    def delete_job(self, job: Object) -> None:
        self.requests.append(("delete", job["metadata"]["name"]))
        self.stored.pop(job["metadata"]["name"], None)

    def pods(self, job: str) -> Sequence[Object]:
        del job
        return list(self.all_pods)

    def pod(self, name: str) -> Object:
        for found in self.all_pods:
            if found["metadata"]["name"] == name:
                return copy.deepcopy(found)
        raise NotFoundError(f"pod team/{name}: not found")

    def events(self, uid: str) -> Sequence[Object]:
        return [event for event in self.all_events if event["involvedObject"].get("uid") == uid]

    def create_config_map(self, config_map: Object) -> Object:
        self.requests.append(("create configmap", config_map))
        return {
            **config_map,
            "metadata": {**config_map["metadata"], "name": config_map["metadata"]["generateName"] + "fghij", "uid": "uid-files"},
        }

    def patch_config_map(self, name: str, patch: Object) -> Object:
        self.requests.append(("patch configmap", name, patch))
        return {}

    def delete_config_map(self, config_map: Object) -> None:
        self.requests.append(("delete configmap", config_map["metadata"]["name"]))

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
        if isinstance(answer, ClientError):
            raise answer
        return answer

    def may(self, verb: str, group: str, resource: str) -> bool:
        del group
        return f"{verb} {resource}" not in self.forbidden
