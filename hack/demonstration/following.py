"""Shows a job while it runs: each condition and each Pod's phase, as the API server reports them."""

import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from demonstration.cluster import Cluster
from demonstration.screen import DemoError, Screen

# Not jsonpath: its `range` yields nothing from the second event of a watch on.
CONDITIONS = r'{{range .status.conditions}}condition|{{.type}}|{{.status}}|{{.message}}{{"\n"}}{{end}}'
PODS = r'Pod|{{.metadata.name}}|{{.status.phase}}|{{"\n"}}'
WAIT_SECONDS = 300
ENDS = {"Succeeded", "Failed"}


def follow(cluster: Cluster, screen: Screen, job: str) -> str:
    """Print what is new about `job` until it has ended, and return `Succeeded` or `Failed`.

    Raises:
        DemoError: It did not end within WAIT_SECONDS.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    lines: queue.Queue[str] = queue.Queue()
    seen: set[str] = set()
    with (
        _watch(cluster, lines, "mpijob", job, "-o", f"go-template={CONDITIONS}"),
        _watch(cluster, lines, "pods", "-l", f"training.kubeflow.org/job-name={job}", "-o", f"go-template={PODS}"),
    ):
        while True:
            try:
                line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise DemoError(f"the job {job} has not ended within {WAIT_SECONDS} s; look at: kubectl describe mpijob {job}") from None
            if not line or line in seen:
                continue
            seen.add(line)
            kind, name, state, message = line.split("|", 3)  # no tabs: kubectl lines them up
            screen.line(f"{kind:9} {name:24} {state:9} {message}".rstrip())
            if kind == "condition" and name in ENDS and state == "True":
                return name


@contextmanager
def _watch(cluster: Cluster, lines: "queue.Queue[str]", *what: str) -> Iterator[None]:
    """Put the lines of a `kubectl get --watch` into `lines`."""
    command = ["kubectl", "get", "--watch", *what]
    process = subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, text=True)
    output = process.stdout
    assert output is not None  # noqa: S101 - stdout=PIPE

    def pass_on() -> None:
        for line in output:
            lines.put(line.rstrip("\n"))

    reader = threading.Thread(target=pass_on)
    reader.start()
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        reader.join()
        output.close()
