"""What the rest of a cluster does to a job: users, kubelets, the Job controller, the garbage collector, and a server that is slow or fails.

All of it is drawn from one random generator, so that a seed reproduces all of it.
"""

import asyncio
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from fakes.api_server import FakeApiServer, FakeClient
from fakes.world import KEY, mpijob
from fakes.writes import KUBELET
from mpiop.clock import Clock, format_time
from mpiop.controller.observe import pods
from mpiop.kube.client import Client
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, Object, controller_of, is_terminating, key_of, uid_of
from mpiop.kube.request import Request
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES

BACKOFF_LIMIT = 2
TTL_SECONDS = 40
POLICIES = ("None", "Running", "All")


class SlowServer(FakeApiServer):
    """A server that takes its time before and after it acts, so that requests overtake each other."""

    def __init__(self, clock: Clock, random: Random) -> None:
        super().__init__(clock)
        self._random = random
        self.useless: list[str] = []
        self.unlawful: list[str] = []
        self.foreign: list[str] = []

    async def call(self, request: Request) -> dict[str, Any]:
        await asyncio.sleep(self._random.choice((0.0, 0.001, 0.005, 0.02)))
        before = self.storage.version
        self._check_owner(request)
        self._check_template(request)
        try:
            return await super().call(request)
        finally:
            if request.verb == "patch" and self.actions[-1].error is None and self.storage.version == before:
                self.useless.append(str(self.actions[-1]))
            await asyncio.sleep(self._random.choice((0.0, 0.001, 0.005)))

    def _check_owner(self, request: Request) -> None:
        """Note an attempt to change what belongs neither to an MPIJob nor to a Job of one."""
        have = self.storage.get(request.resource, request.key)
        if request.verb in {"patch", "delete"} and request.resource is not MPIJOBS and have is not None:
            controller = controller_of(have)  # type: ignore[arg-type]  # an object as a plain dict
            uid = (request.body or {}).get("metadata", {}).get("uid") or (request.body or {}).get("preconditions", {}).get("uid")
            if controller is None and uid == have["metadata"]["uid"]:
                self.foreign.append(f"{request.verb} {request.resource.kind} {request.key}")

    def _check_template(self, request: Request) -> None:
        """Note a change of a Job's template that a real server refuses, up to 1.35 at least (KEP-2926)."""
        have = self.storage.get(request.resource, request.key)
        if request.verb != "patch" or request.resource is not JOBS or have is None or request.subresource:
            return
        template: dict[str, Any] = (request.body or {}).get("spec", {}).get("template")
        if template is None or (request.body or {})["metadata"]["resourceVersion"] != have["metadata"]["resourceVersion"]:
            return
        status = have.get("status", {})
        is_locked = not have["spec"].get("suspend") or status.get("active") or status.get("startTime")
        fixed = set(template.get("spec", {})) - {"nodeSelector", "tolerations", "schedulingGates", "affinity"}
        if is_locked or fixed:
            self.unlawful.append(str(request.body))


class SlowClient(FakeClient):
    """The real client over a slow server."""

    server: SlowServer

    def __init__(self, clock: Clock, random: Random) -> None:
        self.server = SlowServer(clock, random)
        Client.__init__(self, self.server)


class Cluster:
    """Everybody but the operator; each method is one step of somebody, if there is something for them to do."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self.random = random
        self.client = SlowClient(clock, random)
        self.server = self.client.server
        self._clock = clock
        self._pod_names = 0
        self.is_lossy = False
        self._clears_start_time = random.random() < 0.5

    # Users

    def create_job(self) -> None:
        if self.job is not None:
            return
        run_policy = {"cleanPodPolicy": self.random.choice(POLICIES), "suspend": self.random.random() < 0.2, "backoffLimit": BACKOFF_LIMIT}
        run_policy |= {"ttlSecondsAfterFinished": TTL_SECONDS} if self.random.random() < 0.3 else {}
        spec: dict[str, Any] = {
            "runPolicy": run_policy,
            "launcherCreationPolicy": self.random.choice(("AtStartup", "AtStartup", "WaitForWorkersReady")),
        }
        job = mpijob(workers=self.random.randint(0, 3), **spec)
        job["spec"]["mpiImplementation"] = self.random.choice(("OpenMPI", "Intel"))
        if self.is_lossy or self.random.random() < 0.3:
            job["metadata"]["annotations"] = self._restart_annotations()
        self.server.put(MPIJOBS, job)

    def _restart_annotations(self) -> dict[str, str]:
        values = {
            "max-restarts": self.random.choice("1379"),
            "restart": self.random.choice(("Failed", "All")),
            "restart-on": self.random.choice(("Infrastructure", "Infrastructure", "Any")),
            "restart-window": self.random.choice(("5s", "24h")),
            "avoid-failed-nodes": self.random.choice(("true", "false")),
        }
        return {f"mpiop.kubeflow.org/{name}": value for name, value in values.items()}

    def delete_job(self) -> None:
        if self.job is not None:
            self.server.remove(MPIJOBS, KEY)

    def suspend_or_resume(self) -> None:
        if (job := self.job) is not None:
            job["spec"]["runPolicy"]["suspend"] = not job["spec"]["runPolicy"].get("suspend")
            self.server.put(MPIJOBS, job)

    def edit_template(self) -> None:
        """Change something of the launcher's template, with or without a change of `suspend` in the same edit, as Kueue does."""
        if (job := self.job) is not None:
            spec = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
            if self.random.random() < 0.7:
                spec["nodeSelector"] = {"zone": self.random.choice("abc")}
            else:
                spec["containers"][0]["image"] = self.random.choice(("example.com/pi", "example.com/pi:2"))
            if self.random.random() < 0.5:
                job["spec"]["runPolicy"]["suspend"] = not job["spec"]["runPolicy"].get("suspend")
            self.server.put(MPIJOBS, job)

    def scale(self) -> None:
        if (job := self.job) is not None and "Worker" in job["spec"]["mpiReplicaSpecs"]:
            job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = self.random.randint(1, 3)
            self.server.put(MPIJOBS, job)

    def spoil_or_repair(self) -> None:
        if (job := self.job) is not None:
            job["spec"]["slotsPerWorker"] = -1 if job["spec"].get("slotsPerWorker", 1) > 0 else 1
            self.server.put(MPIJOBS, job)

    def delete_worker(self) -> None:
        for pod in self._some(self.workers()):
            self._delete_pod(pod)

    def delete_support(self) -> None:
        resource, name = self.random.choice(((SERVICES, "pi"), (CONFIG_MAPS, "pi-config")))
        if self.server.storage.get(resource, Key("default", name)) is not None:
            self.server.remove(resource, Key("default", name))

    def put_in_the_way(self) -> None:
        """Make a foreign object of a name that the job may want."""
        resource, name = self.random.choice(((SERVICES, "pi"), (SECRETS, "pi-ssh"), (PODS, "pi-worker-1"), (JOBS, "pi-launcher")))
        if self.server.storage.get(resource, Key("default", name)) is None:
            self.server.put(resource, {"metadata": {"name": name, "namespace": "default"}, "spec": {}})

    def clear_the_way(self) -> None:
        for resource in (SERVICES, SECRETS, PODS, JOBS):
            for obj in self.server.objects(resource):
                if controller_of(obj) is None:
                    self.server.remove(resource, key_of(obj))

    # Kubelets

    def move_pod(self) -> None:
        """Take a pod one step on in its life."""
        for pod in self._some([pod for pod in self.pods() if not pods.is_finished(pod) and not is_terminating(pod)]):
            if pods.is_ready(pod) and "-launcher-" in key_of(pod).name:
                self._end(pod, self.random.choice(("Succeeded", "Failed")))
            else:
                self._start(pod)

    def start_pods(self) -> None:
        """Take every pod one step on, but let none end."""
        for pod in self.pods():
            if not pods.is_finished(pod) and not is_terminating(pod):
                self._start(pod)

    def fail_worker(self) -> None:
        for pod in self._some([pod for pod in self.workers() if pods.is_running(pod)]):
            self._end(pod, self.random.choice(("Succeeded", "Failed")))

    def evict_worker(self) -> None:
        for pod in self._some([pod for pod in self.workers() if pods.is_running(pod)]):
            self._end(pod, "Failed", reason="Evicted")

    def reject_worker(self) -> None:
        """Let a kubelet reject a worker that has not begun."""
        for pod in self._some([pod for pod in self.workers() if pods.phase(pod) == "Pending" and not is_terminating(pod)]):
            pod["metadata"]["finalizers"] = []
            self.server.put(PODS, {**pod, "status": {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}})

    def end_launcher(self) -> None:
        for pod in self.pods():
            if pods.is_running(pod) and "-launcher-" in key_of(pod).name:
                self._end(pod, self.random.choice(("Succeeded", "Failed")))

    def lose_node(self) -> None:
        """Let the node of a pod not answer: the node lifecycle controller marks the pod."""
        for pod in self._some([pod for pod in self.pods() if pods.is_running(pod)]):
            pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
            self.server.put(PODS, pod)

    def disrupt(self) -> None:
        """Take a pod away in favour of another."""
        for pod in self._some([pod for pod in self.pods() if pods.is_running(pod)]):
            pod["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"})
            self.server.put(PODS, pod)
            self._delete_pod(pod)

    def end_terminating_pods(self) -> None:
        for pod in self.pods():
            if is_terminating(pod) and set(pod["metadata"].get("finalizers") or ()) <= {KUBELET}:
                self.server.remove(PODS, key_of(pod))

    # Controllers

    def control_jobs(self) -> None:
        """Do what the Job controller does, once for every Job."""
        for job in self.server.objects(JOBS):
            if controller_of(job) is not None and pods.job_outcome(job) is None:
                self._control(job)

    def collect_garbage(self) -> None:
        self.server.collect_garbage()
        for job in self.server.objects(JOBS):
            if is_terminating(job):
                children = [pod for pod in self.pods() if _controller_uid(pod) == uid_of(job)]
                for pod in children:
                    self._delete_pod(pod)
                if not children:
                    self.server.remove(JOBS, key_of(job))

    def expire_launcher(self) -> None:
        """Delete a Job that has ended, as its TTL does, or one that has not, as people do."""
        for job in self.server.objects(JOBS):
            if controller_of(job) is not None and (pods.job_outcome(job) is not None or self.random.random() < 0.2):
                self.server.remove(JOBS, key_of(job))

    def _control(self, job: Object) -> None:
        children = [pod for pod in self.pods() if _controller_uid(pod) == uid_of(job)]
        active = [pod for pod in children if not pods.is_finished(pod)]
        phases = [pods.phase(pod) for pod in children]
        if job["spec"].get("suspend") or is_terminating(job):
            for pod in active:
                self._delete_pod(pod)
            self._note_suspension(job)
        elif "Succeeded" in phases:
            self._end_job(job, "Complete", completionTime=format_time(self._clock.now()), succeeded=1)
        elif phases.count("Failed") > job["spec"].get("backoffLimit", BACKOFF_LIMIT):
            self._end_job(job, "Failed", failed=phases.count("Failed"))
        else:
            self._note_start(job)
            if not active:
                self._make_launcher_pod(job)

    def _note_suspension(self, job: Object) -> None:
        """Mark the pods of a Job as terminating, once; from Kubernetes 1.36 its startTime goes too."""
        if pods.condition_status(job, "Suspended") != "True" or job["status"].get("active"):
            status: dict[str, Any] = {"active": 0, "conditions": [{"type": "Suspended", "status": "True"}]}
            self.server.put_status(JOBS, key_of(job), status | ({"startTime": None} if self._clears_start_time else {}))

    def _note_start(self, job: Object) -> None:
        status = job.get("status") or {}
        if not status.get("active") or pods.condition_status(job, "Suspended") == "True":
            started = {"startTime": format_time(self._clock.now()), "active": 1, "conditions": [{"type": "Suspended", "status": "False"}]}
            self.server.put_status(JOBS, key_of(job), started)

    def _end_job(self, job: Object, type_: str, **status: Any) -> None:
        condition = {"type": type_, "status": "True", "reason": "BackoffLimitExceeded" if type_ == "Failed" else ""}
        self.server.put_status(JOBS, key_of(job), {"conditions": [condition], **status})

    def _make_launcher_pod(self, job: Object) -> None:
        self._pod_names += 1
        template = job["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": key_of(job).name, "uid": uid_of(job), "controller": True}
        name = f"pi-launcher-{self._pod_names:05d}"
        metadata = {**template["metadata"], "name": name, "namespace": "default", "ownerReferences": [owner]}
        self.server.put(PODS, {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}})

    # The server

    def fail_requests(self) -> None:
        resource = self.random.choice((None, MPIJOBS, PODS, JOBS, SECRETS, CONFIG_MAPS))
        verb = self.random.choice(("create", "patch", "delete", "*"))
        error, takes_effect = self.random.choice(tuple(_failures()))
        self.client.refuse(verb, resource, "", error, times=self.random.randint(1, 3), takes_effect=takes_effect)

    def recover(self) -> None:
        self.server.allow()

    # What there is

    @property
    def job(self) -> Object | None:
        return next(iter(self.server.objects(MPIJOBS)), None)

    def pods(self) -> list[Object]:
        """Return the pods that somebody controls."""
        return [pod for pod in self.server.objects(PODS) if controller_of(pod) is not None]

    def workers(self) -> list[Object]:
        return [pod for pod in self.pods() if "-worker-" in key_of(pod).name]

    def _some(self, objects: list[Object]) -> Iterator[Object]:
        if objects:
            yield self.random.choice(objects)

    def _start(self, pod: Object) -> None:
        """Start a pod, or let a started one become Ready."""
        pod["metadata"]["finalizers"] = [KUBELET]
        pod["spec"] = {**pod.get("spec", {}), "nodeName": pod.get("spec", {}).get("nodeName") or f"node-{self.random.randint(1, 3)}"}
        self._put_pod(pod, "Running", ready=pods.phase(pod) == "Running")

    def _end(self, pod: Object, phase: str, **status: Any) -> None:
        pod["metadata"]["finalizers"] = []
        self._put_pod(pod, phase, **status)

    def _put_pod(self, pod: Object, phase: str, *, ready: bool = False, **status: Any) -> None:
        address = {"podIP": f"10.0.0.{int(key_of(pod).name[-1]) + 1}"} if "-worker-" in key_of(pod).name else {}
        kept = {name: value for name, value in pod.get("status", {}).items() if name == "containerStatuses"}
        pod["status"] = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}], **kept, **address, **status}
        self.server.put(PODS, pod)

    def _delete_pod(self, pod: Object) -> None:
        self.server.writes.remove_or_mark(PODS, key_of(pod))


Step = Callable[[], None]


def _failures() -> Iterator[tuple[KubeError, bool]]:
    yield StatusError("test", {"code": 429, "reason": "TooManyRequests", "message": "a fault"}), False
    yield StatusError("test", {"code": 409, "reason": "Conflict", "message": "a fault"}), False
    yield StatusError("test", {"code": 403, "reason": "Forbidden", "message": "exceeded quota: a fault"}), False
    yield TransportError("a fault: the answer was lost"), True


def _controller_uid(obj: Object) -> str:
    controller = controller_of(obj)
    return "" if controller is None else controller["uid"]
