"""kubectl as Python: objects in and out as JSON, and waiting for what a watch shows, never for time to pass."""

import contextlib
import json
import os
import selectors
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from e2e.commands import Ended, ended
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Resource

Obj = dict[str, Any]

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

CHILDREN = (PODS, SERVICES, CONFIG_MAPS, SECRETS, JOBS)
"""Kinds of the objects that the operator makes for a job."""


class CommandError(AssertionError):
    """A kubectl command failed; the message carries what it printed."""


class NotSeenError(AssertionError):
    """What was waited for did not come in time; the message carries the last objects seen."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one environment and, when set, one namespace."""

    environment: Mapping[str, str] = field(repr=False)
    namespace: str = ""

    def within(self, namespace: str) -> "Kubectl":
        """Return the same for another namespace."""
        return replace(self, namespace=namespace)

    def command(self, *arguments: str) -> list[str]:
        return ["kubectl", *(("--namespace", self.namespace) if self.namespace else ()), *arguments]

    def attempt(self, *arguments: str, stdin: str = "", timeout_seconds: float = 120) -> Ended:
        """Run kubectl and return how it ended."""
        return ended(self.command(*arguments), self.environment, stdin=stdin, timeout_seconds=timeout_seconds)

    def run(self, *arguments: str, stdin: str = "", timeout_seconds: float = 120) -> str:
        """Run kubectl and return what it printed.

        Raises:
            CommandError: It failed.
        """
        done = self.attempt(*arguments, stdin=stdin, timeout_seconds=timeout_seconds)
        if done.returncode:
            raise CommandError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    @contextlib.contextmanager
    def following(self, pod: str, *options: str, timeout_seconds: float = 120) -> Iterator[Iterator[str]]:
        """Yield the lines that `pod` logs; they end with its container, or after `timeout_seconds`."""
        command = self.command("logs", "--follow", pod, *options)
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            deadline = threading.Timer(timeout_seconds, process.terminate)
            deadline.start()
            try:
                yield iter(process.stdout)
            finally:
                deadline.cancel()
                process.terminate()

    def apply(self, *objects: Obj) -> None:
        self.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def raw(self, path: str) -> str:
        """Return what the API server answers to GET `path`."""
        return self.run("get", "--raw", path)

    def _path(self, resource: Resource, name: str = "") -> str:
        return resource.path(self.namespace, name)

    def read(self, resource: Resource, name: str) -> Obj:
        found: Obj = json.loads(self.raw(self._path(resource, name)))
        return found

    def read_all(self, resource: Resource, labels: str = "") -> list[Obj]:
        """Return the objects with `labels`, by name."""
        return _by_name(self._list(resource, labels)["items"])

    def _list(self, resource: Resource, labels: str) -> Obj:
        listed: Obj = json.loads(self.raw(f"{self._path(resource)}?labelSelector={_quoted(labels)}"))
        return listed

    def until(
        self,
        resource: Resource,
        is_seen: Callable[[list[Obj]], bool],
        *,
        labels: str = "",
        timeout_seconds: float = 60,
    ) -> list[Obj]:
        """Return the objects of `resource`, by name, as soon as `is_seen` holds for them.

        Raises:
            NotSeenError: It did not within `timeout_seconds`.
        """
        deadline = time.monotonic() + timeout_seconds
        listed = self._list(resource, labels)
        objects = {_name(found): found for found in listed["items"]}
        if is_seen(current := _by_name(objects.values())):
            return current
        path = f"{self._path(resource)}?watch=true&resourceVersion={listed['metadata']['resourceVersion']}&labelSelector={_quoted(labels)}"
        for event in self._events(path, deadline):
            if event["type"] == "ERROR":
                raise CommandError(f"watch of {path}: {event['object'].get('message')}")
            if event["type"] == "DELETED":
                objects.pop(_name(event["object"]), None)
            else:
                objects[_name(event["object"])] = event["object"]
            if is_seen(current := _by_name(objects.values())):
                return current
        seen = json.dumps([{"metadata": o["metadata"]["name"], "status": o.get("status")} for o in current], indent=1)
        raise NotSeenError(
            f"{resource.plural} {labels} in {self.namespace or 'the cluster'}: not seen in {timeout_seconds:g} s; last: {seen}"
        )

    def until_one(self, resource: Resource, name: str, is_seen: Callable[[Obj], bool], *, timeout_seconds: float = 60) -> Obj:
        """Return the object `name` as soon as `is_seen` holds for it."""

        def holds(objects: list[Obj]) -> bool:
            return any(is_seen(found) for found in objects if found["metadata"]["name"] == name)

        found = self.until(resource, holds, timeout_seconds=timeout_seconds)
        return next(each for each in found if each["metadata"]["name"] == name)

    def until_gone(self, resource: Resource, name: str, *, timeout_seconds: float = 60) -> None:
        """Return as soon as there is no object `name`."""
        self.until(resource, lambda objects: all(o["metadata"]["name"] != name for o in objects), timeout_seconds=timeout_seconds)

    def _events(self, path: str, deadline: float) -> Iterator[Obj]:
        """Yield the events of a watch until `deadline`; the server ends a watch after half an hour at the earliest."""
        with (
            subprocess.Popen(self.command("get", "--raw", path), env=self.environment, stdout=subprocess.PIPE) as process,
            selectors.DefaultSelector() as ready,
        ):
            output = process.stdout
            assert output is not None
            ready.register(output, selectors.EVENT_READ)
            pending = b""
            try:
                while ready.select(max(0.0, deadline - time.monotonic())):
                    if not (chunk := os.read(output.fileno(), 1 << 20)):
                        return
                    *lines, pending = (pending + chunk).split(b"\n")
                    yield from (json.loads(line) for line in lines)
            finally:
                process.terminate()


def _name(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _by_name(objects: Iterable[Obj]) -> list[Obj]:
    return sorted(objects, key=_name)


def _quoted(selector: str) -> str:
    return urllib.parse.quote(selector, safe="")
