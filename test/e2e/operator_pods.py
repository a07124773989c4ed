"""The operator as deployed: its Pods, which of them leads, what they log and measure."""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from e2e.kubectl import DEPLOYMENTS, Kubectl, NotSeenError, Obj
from mpiop.kube.resources import LEASES, PODS

NAME = "mpi-operator"
HEALTH_PORT = 8080
SELECTOR = "app=mpi-operator"


@dataclass(frozen=True)
class Operator:
    """The Deployment `mpi-operator` in the namespace of `kubectl`."""

    kubectl: Kubectl

    def wait_until_ready(self) -> None:
        """Return when the Deployment is rolled out and one replica leads."""
        self.kubectl.run("rollout", "status", f"deployment/{NAME}", "--timeout=120s", timeout_seconds=130)
        self.until_led()

    def pods(self) -> list[Obj]:
        """Return its Pods that are not being deleted."""
        return [pod for pod in self.kubectl.read_all(PODS, SELECTOR) if "deletionTimestamp" not in pod["metadata"]]

    def until_led(self, *, not_by: str = "", timeout_seconds: float = 60) -> str:
        """Return the name of the Pod that holds the Lease, as soon as one other than `not_by` does; one that is gone may still be named."""

        def is_led(lease: Obj) -> bool:
            return holder(lease) in {pod["metadata"]["name"] for pod in self.pods()} - {not_by}

        return holder(self.kubectl.until_one(LEASES, NAME, is_led, timeout_seconds=timeout_seconds))

    def replicas_desired(self) -> int:
        """Return how many Pods the Deployment wants."""
        desired: int = self.kubectl.read(DEPLOYMENTS, NAME)["spec"]["replicas"]
        return desired

    def stop(self) -> None:
        self.kubectl.run("scale", f"deployment/{NAME}", "--replicas=0")
        self.kubectl.until(PODS, lambda pods: not pods, labels=SELECTOR)

    @contextlib.contextmanager
    def absent(self) -> Iterator[None]:
        """Let no replica run meanwhile; afterwards return when there are as many as before, and ready."""
        desired = self.replicas_desired()
        try:
            self.stop()
            yield
        finally:
            self.kubectl.run("scale", f"deployment/{NAME}", f"--replicas={desired}")
            self.wait_until_ready()

    def answer(self, pod: str, path: str, port: int = HEALTH_PORT) -> str:
        """Return what `pod` answers to GET `path`."""
        return self.kubectl.raw(f"/api/v1/namespaces/{self.kubectl.namespace}/pods/{pod}:{port}/proxy{path}")

    def metrics(self, pod: str) -> dict[str, float]:
        """Return every sample of `pod`, by series in the order of sorted labels: `name{a="b"}`."""
        return samples_of(self.answer(pod, "/metrics", self.metrics_port(pod)))

    def until_metrics(self, is_seen: Callable[[dict[str, float]], bool], *, timeout_seconds: float = 20) -> dict[str, float]:
        """Return the leader's samples as soon as `is_seen` holds for them; metrics cannot be watched, so they are asked for again.

        Raises:
            NotSeenError: It did not within `timeout_seconds`.
        """
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if is_seen(samples := self.metrics(self.until_led())):
                return samples
        raise NotSeenError(f"metrics of the leader: not seen in {timeout_seconds:g} s")

    def metrics_port(self, pod: str) -> int:
        """Return the port on which the manifest lets `pod` serve metrics."""
        arguments: list[str] = self.kubectl.read(PODS, pod)["spec"]["containers"][0]["args"]
        return next(int(each.rpartition("=")[2]) for each in arguments if "monitoring-port" in each)

    @contextlib.contextmanager
    def forwarding(self, pod: str) -> Iterator[int]:
        """Yield a port of this machine that leads to the metrics of `pod`."""
        command = self.kubectl.command("port-forward", f"pod/{pod}", f":{self.metrics_port(pod)}")
        with subprocess.Popen(command, env=self.kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                found = re.search(r"127\.0\.0\.1:(\d+) ->", process.stdout.readline())
                assert found is not None
                yield int(found[1])
            finally:
                process.terminate()

    def log(self, pod: str) -> list[Obj]:
        """Return the log of `pod`, a JSON object a line."""
        return [json.loads(line) for line in self.kubectl.run("logs", pod).splitlines()]


def holder(lease: Obj) -> str:
    """Return the Pod named in the Lease (the identity is the Pod's name, `_` and something unique), or ""."""
    return (lease["spec"].get("holderIdentity") or "").partition("_")[0]


def samples_of(page: str) -> dict[str, float]:
    """Return every sample of a page in the text format of Prometheus, by series in the order of sorted labels: `name{a="b"}`."""
    families = text_string_to_metric_families(page)
    return {series(sample.name, sample.labels): sample.value for family in families for sample in family.samples}


def series(name: str, labels: dict[str, str]) -> str:
    """Render a series as Prometheus does."""
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{inner}}}" if inner else name
