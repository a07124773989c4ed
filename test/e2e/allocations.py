"""Allocations of tests: makes them, watches the clients of their steps, and lists the processes on their hosts."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Final

from e2e.kubectl import Kubectl
from e2e.plugin import Tool
from e2e.waiting import until

IMAGE: Final = "mpiop.invalid/mpi-pi:openmpi"
STUBBORN: Final = "trap '' TERM; echo begun; sleep 1000 & sleep 1001"
"""A program with a child, which both ignore that they are asked to end."""
LIST: Final = "for each in /proc/[0-9]*; do tr '\\0' ' ' <$each/cmdline; echo; done 2>/dev/null"
OWN: Final = "for each in"
LIMIT_SECONDS: Final = 240
"""A client that hangs is killed after this time, so that a test fails and does not hang too."""


def allocate(tool: Tool, name: str, *options: str) -> str:
    assert tool.run("alloc", "-n", "4", "--slots", "2", "--name", name, "--no-shell", *options) == f"{name}\n"
    return name


def pods(here: Kubectl, name: str) -> list[str]:
    selector = f"--selector=training.kubeflow.org/job-name={name}"
    found = here.run("get", "pods", selector, "--field-selector=status.phase=Running", "-o", "name").split()
    return [pod.removeprefix("pod/") for pod in found]


def processes(here: Kubectl, name: str) -> Counter[str]:
    """Return the command lines of the processes in the Pods of a job, by role of the Pod; those of zombies are empty."""
    found = Counter[str]()
    for pod in pods(here, name):
        role = f"{name}-launcher" if pod.startswith(f"{name}-launcher-") else pod
        listed = here.run("exec", pod, "--", "sh", "-c", LIST).splitlines()
        found.update(f"{role}: {line.strip()}" for line in listed if line.strip() and OWN not in line)
    return found


async def until_only(here: Kubectl, name: str, before: Counter[str]) -> None:
    async def is_clean() -> bool:
        found = await asyncio.to_thread(processes, here, name)
        return not found - before

    await until("nothing is left of the step", is_clean, timeout_seconds=60)


class Client:
    """A step of which the client is watched, or another verb with the name of an allocation."""

    def __init__(self, tool: Tool, name: str, *words: str, verb: str = "step", stdin: int = subprocess.DEVNULL) -> None:
        command = ["kubectl-mpi", verb, name, *words]
        self.process = subprocess.Popen(
            command,
            env=tool.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.seen = ""

    def until(self, words: str) -> str:
        assert self.process.stdout is not None
        with self._limited():
            while words not in self.seen:
                line = self.process.stdout.readline()
                assert line, f"no {words!r} in {self.seen!r}, exit code {self.process.wait(60)}"
                self.seen += line
        return self.seen

    def end(self, number: signal.Signals | None = None) -> int:
        assert self.process.stdout is not None
        if number is not None:
            self.process.send_signal(number)
        with self._limited(), self.process.stdout as output:
            self.seen += output.read()
        return self.process.wait(60)

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """Kill the client and its children if the block takes too long."""
        limit = threading.Timer(LIMIT_SECONDS, os.killpg, (self.process.pid, signal.SIGKILL))
        limit.start()
        try:
            yield
        finally:
            limit.cancel()
