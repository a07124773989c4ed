"""Requests with JSON of any depth, which no library of Python can make or read, and the places of an MPIJob where it may be tried."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from mpiop.kube.config import load_config
from mpiop.kube.tls import build_context

DEEP = "@deep@"
"""Represents the deep value in what is sent."""
LEVELS = (*range(9_900, 9_980, 10), *range(9_980, 10_002))
"""The API server decodes 10,000 levels: those above its last steps are tried one by one, because what it adds itself comes on top."""
FEW_LEVELS = (*range(9_901, 9_980, 20), *range(9_980, 10_002, 3))

POD = "spec.mpiReplicaSpecs.Launcher.template"
DROPPED = (
    "strange",
    "metadata.strange",
    "spec.strange",
    "spec.runPolicy.strange",
    f"{POD}.strange",
    f"{POD}.metadata.managedFields.0.fieldsV1",
    f"{POD}.spec.strange",
    f"{POD}.spec.securityContext.strange",
    f"{POD}.spec.affinity.podAffinity.strange",
    f"{POD}.spec.containers.0.strange",
    f"{POD}.spec.containers.0.resources.strange",
)
"""Places of which the schema knows nothing, or no more than that there is an object."""
REFUSED = (
    "metadata.annotations.a",
    "metadata.labels.a",
    "spec.slotsPerWorker",
    "spec.runPolicy.schedulingPolicy.minResources.cpu",
    "spec.runPolicy.schedulingPolicy.minResources.requests.cpu",
    f"{POD}.metadata.annotations.a",
    f"{POD}.spec.nodeSelector.a",
    f"{POD}.spec.overhead.cpu",
    f"{POD}.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector.matchLabels.a",
    f"{POD}.spec.containers.0.command.0",
    f"{POD}.spec.containers.0.env.0.value",
    f"{POD}.spec.containers.0.resources.limits.cpu",
    f"{POD}.spec.containers.0.livenessProbe.httpGet.port",
)
"""Places for values of another type, those of maps above all."""


def deep(levels: int) -> str:
    """Return JSON of so many levels."""
    return '{"f:a":' * levels + "{}" + "}" * levels


def put(obj: dict[str, Any], path: str, value: object) -> None:
    """Put `value` at `path`, whose numbers are places in lists; what is missing on the way is made."""
    steps = [int(step) if step.isdigit() else step for step in path.split(".")]
    found: Any = obj
    for step, following in pairwise(steps):
        if isinstance(step, str):
            found.setdefault(step, [] if isinstance(following, int) else {})
        elif step == len(found):
            found.append({})
        found = found[step]
    if isinstance(steps[-1], int):
        found.append(value)
    else:
        found[steps[-1]] = value


@dataclass(frozen=True)
class Answer:
    status: int
    text: str

    @property
    def is_stored(self) -> bool:
        return self.status in {200, 201}

    @property
    def is_refused(self) -> bool:
        """Return whether the server reports that the request is wrong."""
        return self.status in {400, 422}


class Server:
    """The API server of a kubeconfig, spoken to in bytes."""

    def __init__(self, kubeconfig: str) -> None:
        """Read the kubeconfig; the connection is opened with the first request."""
        config = load_config(kubeconfig=kubeconfig)
        url = urlsplit(config.server)
        context = build_context(config.tls, None)
        self._connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=context, timeout=60)

    def send(self, verb: str, path: str, body: object = None, *, levels: int = 0, content_type: str = "application/json") -> Answer:
        """Send `body` with JSON of so many `levels` where it has `DEEP`."""
        text = json.dumps(body).replace(json.dumps(DEEP), deep(levels))
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        self._connection.request(verb, path, body=text if body is not None else None, headers=headers)
        response = self._connection.getresponse()
        return Answer(response.status, response.read().decode())

    def watch(self, path: str, count: int) -> Answer:
        """Watch until so many events have come or 30 seconds have passed."""
        self._connection.request("GET", f"{path}?watch=true&timeoutSeconds=30", headers={"Accept": "application/json"})
        with self._connection.getresponse() as response:
            events = [response.readline() for _ in range(count)]
        self._connection.close()
        return Answer(response.status, b"".join(events).decode())

    def patch(self, path: str, *operations: Mapping[str, object], levels: int = 0) -> Answer:
        return self.send("PATCH", path, operations, levels=levels, content_type="application/json-patch+json")

    def close(self) -> None:
        self._connection.close()
