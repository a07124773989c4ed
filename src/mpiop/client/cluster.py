"""The API server: plain objects, and errors as sentences."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self

import urllib3

from mpiop.api import constants as c
from mpiop.client.api import LogOptions, Object
from mpiop.client.connection import Call, Connection
from mpiop.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NoClusterError,
    NotFoundError,
    NotNowError,
    UnauthenticatedError,
    UnreachableError,
)
from mpiop.client.quantities import without_patterns
from mpiop.kube.config import find_config
from mpiop.kube.errors import ConfigError
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, MPIJOBS, PODS, SELF_SUBJECT_ACCESS_REVIEWS

_ERRORS: Final[Mapping[int, type[ClientError]]] = {
    400: InvalidError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidError,
    429: NotNowError,
}


class Cluster:
    """An `Api` over the network.

    Attributes:
        namespace: Default namespace of every call.
    """

    def __init__(
        self, *, namespace: str = "", context: str = "", kubeconfig: str = "", report: Callable[[str], None] | None = None
    ) -> None:
        """Read the kubeconfig as kubectl does, or the service account's files in a Pod.

        `report` is called once, from another thread, when an answer takes long.

        Raises:
            NoClusterError: There is neither, or it cannot be used.
        """
        try:
            found = find_config(kubeconfig, context)
            self._connection = Connection(found, report)
        except ConfigError as error:
            raise NoClusterError(str(error)) from error
        self.namespace = namespace or found.namespace or "default"

    def within(self, namespace: str) -> Self:
        """Return the same for another namespace."""
        other = copy.copy(self)
        other.namespace = namespace
        return other

    def job(self, name: str) -> Object:
        """Return an MPIJob."""
        return self._send("GET", MPIJOBS.path(self.namespace, name), f"job {self.namespace}/{name}")

    def jobs(self, *, everywhere: bool = False) -> Sequence[Object]:
        """Return the MPIJobs of the namespace, or of all."""
        if everywhere:
            return self._list(MPIJOBS.path(), "jobs of all namespaces")
        return self._list(MPIJOBS.path(self.namespace), f"jobs of namespace {self.namespace}")

    def create_job(self, job: Object, *, is_dry_run: bool = False) -> Object:
        """Create an MPIJob and return it as stored; an unknown field is an error."""
        metadata = job["metadata"]
        name, namespace = metadata.get("name") or metadata.get("generateName", ""), metadata.get("namespace") or self.namespace
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if is_dry_run else {})
        return self._send("POST", MPIJOBS.path(namespace), f"job {namespace}/{name}", query, job)

    def check_pod(self, template: Object) -> None:
        """Let the API server check a Pod template, and create nothing; an unknown field is an error."""
        metadata: Object = template.get("metadata") or {}
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**metadata, "generateName": "check-"}}
        self._send("POST", PODS.path(self.namespace), "pod template", {"fieldValidation": "Strict", "dryRun": "All"}, pod)

    def patch_job(self, name: str, patch: Object) -> Object:
        """Merge `patch` into an MPIJob."""
        return self._send("PATCH", MPIJOBS.path(self.namespace, name), f"job {self.namespace}/{name}", body=patch)

    def delete_job(self, job: Object) -> None:
        """Delete exactly this MPIJob; do nothing if it is gone."""
        name, namespace, uid = (job["metadata"][field] for field in ("name", "namespace", "uid"))
        try:
            options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
            self._send("DELETE", MPIJOBS.path(namespace, name), f"job {namespace}/{name}", body=options)
        except (NotFoundError, ConflictError):
            return

    def pods(self, job: str) -> Sequence[Object]:
        """Return the Pods of a job."""
        labels = f"{c.LABEL_JOB_NAME}={job},{c.LABEL_OPERATOR_NAME}={c.OPERATOR_NAME}"
        return self._list(PODS.path(self.namespace), f"pods of job {self.namespace}/{job}", {"labelSelector": labels})

    def pod(self, name: str) -> Object:
        """Return a Pod; the right to list Pods is enough."""
        what = f"pod {self.namespace}/{name}"
        found = self._list(PODS.path(self.namespace), what, {"fieldSelector": f"metadata.name={name}"})
        if not found:
            raise NotFoundError(f"{what}: there is none")
        return found[0]

    def events(self, uid: str) -> Sequence[Object]:
        """Return the Events about an object."""
        query = {"fieldSelector": f"involvedObject.uid={uid}"}
        return self._list(EVENTS.path(self.namespace), f"events of namespace {self.namespace}", query)

    def create_config_map(self, config_map: Object) -> Object:
        """Create a ConfigMap."""
        return self._send("POST", CONFIG_MAPS.path(self.namespace), f"configmap in namespace {self.namespace}", body=config_map)

    def patch_config_map(self, name: str, patch: Object) -> Object:
        """Merge `patch` into a ConfigMap."""
        return self._send("PATCH", CONFIG_MAPS.path(self.namespace, name), f"configmap {self.namespace}/{name}", body=patch)

    def delete_config_map(self, config_map: Object) -> None:
        """Delete exactly this ConfigMap."""
        name, namespace, uid = (config_map["metadata"][field] for field in ("name", "namespace", "uid"))
        self._send("DELETE", CONFIG_MAPS.path(namespace, name), f"configmap {namespace}/{name}", body={"preconditions": {"uid": uid}})

    def read_log(self, pod: str, container: str, options: LogOptions) -> Iterator[bytes]:
        """Yield the log of a container, with time stamps, in pieces.

        A followed log that is silent for a minute ends, for its connection may be dead.
        """
        what = f"log of container {container} of pod {self.namespace}/{pod}"
        query = {"container": container, "timestamps": "true"}
        query |= {"follow": "true"} if options.follow else {}
        query |= {"previous": "true"} if options.previous else {}
        if options.since_seconds is not None:
            query["sinceSeconds"] = str(options.since_seconds)
        if options.since_time:
            query["sinceTime"] = options.since_time
        if options.tail is not None:
            query["tailLines"] = str(options.tail)
        answer = self._open(Call("GET", PODS.path(self.namespace, pod, "log"), what, query))
        try:
            yield from answer.stream(amt=None)
        except urllib3.exceptions.ReadTimeoutError as error:
            if not options.follow:
                raise UnreachableError(f"{what}: the API server sends nothing more") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise UnreachableError(f"{what}: the connection broke ({type(error).__name__})") from error
        finally:
            answer.close()

    def get(self, path: str) -> Object:
        """Return what the API server answers at `path`, which may have a query."""
        plain, _, query = path.partition("?")
        return self._send("GET", plain, plain, dict(pair.split("=", 1) for pair in query.split("&")) if query else {})

    def may(self, verb: str, group: str, resource: str) -> bool:
        """Return whether the user may do this in the namespace."""
        name, _, subresource = resource.partition("/")
        attributes = {"namespace": self.namespace, "verb": verb, "group": group, "resource": name, "subresource": subresource}
        reviews = SELF_SUBJECT_ACCESS_REVIEWS
        review = {"apiVersion": reviews.api_version, "kind": reviews.kind, "spec": {"resourceAttributes": attributes}}
        answer = self._send("POST", reviews.path(), "your rights", body=review)
        return bool(answer["status"]["allowed"])

    def _list(self, path: str, what: str, query: Mapping[str, str] | None = None) -> Sequence[Object]:
        answer = self._send("GET", path, what, query)
        if not isinstance(answer.get("items"), list):
            raise UnreachableError(f"{what}: the server does not answer as an API server does; check server of {self._connection.origin}")
        items: Sequence[Object] = answer["items"]
        return items

    def _send(self, method: str, path: str, what: str, query: Mapping[str, str] | None = None, body: Object | None = None) -> Object:
        answer = self._open(Call(method, path, what, query or {}, body))
        try:
            found: Object = dict(json.loads(answer.data))
        except (urllib3.exceptions.HTTPError, OSError, ValueError, TypeError) as error:
            raise UnreachableError(f"{what}: the answer broke off ({type(error).__name__})") from error
        return found

    def _open(self, call: Call) -> urllib3.BaseHTTPResponse:
        """Send a request and return the answer, of which the head was read."""
        answer = self._connection.send(call)
        if answer.status < 300:  # noqa: PLR2004 - success
            return answer
        try:
            body = answer.data
        except (urllib3.exceptions.HTTPError, OSError):
            body = b""
        raise self._error(call.what, answer.status, body)

    def _error(self, what: str, code: int, body: bytes) -> ClientError:
        """Return an answer that is an error, in the API server's own words."""
        try:
            message = without_patterns(str(json.loads(body)["message"]))
        except (TypeError, ValueError, KeyError):
            message = body.decode(errors="replace").strip()[:200] or f"status {code}"
        if code == 401:  # noqa: PLR2004 - Unauthorized
            message = f"the API server does not accept the credentials of {self._connection.origin or 'the kubeconfig'}; log in again"
        elif "page not found" in message or "could not find the requested resource" in message:
            message = "the cluster does not know this resource; for MPIJobs, install the operator"
        other = UnreachableError if code >= 500 else ClientError  # noqa: PLR2004 - the server's fault: it may answer the next time
        if "failed calling webhook" in message:
            other = NotNowError
        return _ERRORS.get(code, other)(f"{what}: {message}")
