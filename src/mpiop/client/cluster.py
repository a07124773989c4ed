"""The API server over the `kubernetes` package: plain objects, and errors as sentences."""

import copy
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.client import ApiException
from kubernetes.config import kube_config

from mpiop.client.api import LogOptions, Object
from mpiop.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    NotNowError,
    UnreachableError,
)

_JOBS: Final = "/apis/kubeflow.org/v2beta1"
_ERRORS: Final[Mapping[int, type[ClientError]]] = {
    400: InvalidError,
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidError,
    429: NotNowError,
}
_TIMEOUT: Final = (10, 60)
"""Seconds until a connection is made, and between two reads."""
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Cluster:
    """An `Api` over the network.

    Attributes:
        namespace: In which all happens, where nothing else is said.
    """

    def __init__(self, *, namespace: str = "", context: str = "", kubeconfig: str = "") -> None:
        """Read the kubeconfig as kubectl does, or the service account's files in a Pod.

        Raises:
            UnreachableError: There is neither, or the context does not exist.
        """
        self._client: Any
        self._client, current = _load(context, kubeconfig)
        self.namespace = namespace or current or "default"

    def within(self, namespace: str) -> Self:
        """Return the same for another namespace."""
        other = copy.copy(self)
        other.namespace = namespace
        return other

    def job(self, name: str) -> Object:
        """Return an MPIJob."""
        return self._send("GET", self._path_of(name), f"job {self.namespace}/{name}")

    def jobs(self, *, everywhere: bool = False) -> Sequence[Object]:
        """Return the MPIJobs of the namespace, or of all."""
        if everywhere:
            return _items(self._send("GET", f"{_JOBS}/mpijobs", "jobs of all namespaces"))
        return _items(self._send("GET", self._path_of(), f"jobs of namespace {self.namespace}"))

    def create_job(self, job: Object, *, is_dry_run: bool = False) -> Object:
        """Create an MPIJob and return it as stored; an unknown field is an error."""
        metadata = job["metadata"]
        name, namespace = metadata.get("name") or metadata.get("generateName", ""), metadata.get("namespace") or self.namespace
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if is_dry_run else {})
        return self._send("POST", f"{_JOBS}/namespaces/{_quoted(namespace)}/mpijobs", f"job {namespace}/{name}", query, job)

    def check_pod(self, template: Object) -> None:
        """Let the API server check a Pod template, and create nothing; an unknown field is an error."""
        metadata: Object = template.get("metadata") or {}
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**metadata, "generateName": "check-"}}
        path, query = f"/api/v1/namespaces/{_quoted(self.namespace)}/pods", {"fieldValidation": "Strict", "dryRun": "All"}
        self._send("POST", path, "pod template", query, pod)

    def patch_job(self, name: str, patch: Object) -> Object:
        """Merge `patch` into an MPIJob."""
        return self._send("PATCH", self._path_of(name), f"job {self.namespace}/{name}", body=patch)

    def delete_job(self, job: Object) -> None:
        """Delete exactly this MPIJob; it is no error that it is gone."""
        name, namespace, uid = (job["metadata"][field] for field in ("name", "namespace", "uid"))
        path = f"{_JOBS}/namespaces/{_quoted(namespace)}/mpijobs/{_quoted(name)}"
        try:
            options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
            self._send("DELETE", path, f"job {namespace}/{name}", body=options)
        except (NotFoundError, ConflictError):
            return

    def pods(self, job: str) -> Sequence[Object]:
        """Return the Pods of a job."""
        labels = f"training.kubeflow.org/job-name={job},training.kubeflow.org/operator-name=mpi-operator"
        path = f"/api/v1/namespaces/{_quoted(self.namespace)}/pods"
        return _items(self._send("GET", path, f"pods of job {self.namespace}/{job}", {"labelSelector": labels}))

    def pod(self, name: str) -> Object:
        """Return a Pod; the right to list Pods is enough."""
        what, path = f"pod {self.namespace}/{name}", f"/api/v1/namespaces/{_quoted(self.namespace)}/pods"
        found = _items(self._send("GET", path, what, {"fieldSelector": f"metadata.name={name}"}))
        if not found:
            raise NotFoundError(f"{what}: there is none")
        return found[0]

    def events(self, uid: str) -> Sequence[Object]:
        """Return the Events about an object."""
        path = f"/api/v1/namespaces/{_quoted(self.namespace)}/events"
        return _items(self._send("GET", path, f"events of namespace {self.namespace}", {"fieldSelector": f"involvedObject.uid={uid}"}))

    def create_config_map(self, config_map: Object) -> Object:
        """Create a ConfigMap."""
        path = f"/api/v1/namespaces/{_quoted(self.namespace)}/configmaps"
        return self._send("POST", path, f"configmap in namespace {self.namespace}", body=config_map)

    def patch_config_map(self, name: str, patch: Object) -> Object:
        """Merge `patch` into a ConfigMap."""
        path = f"/api/v1/namespaces/{_quoted(self.namespace)}/configmaps/{_quoted(name)}"
        return self._send("PATCH", path, f"configmap {self.namespace}/{name}", body=patch)

    def delete_config_map(self, config_map: Object) -> None:
        """Delete exactly this ConfigMap."""
        name, namespace, uid = (config_map["metadata"][field] for field in ("name", "namespace", "uid"))
        path = f"/api/v1/namespaces/{_quoted(namespace)}/configmaps/{_quoted(name)}"
        self._send("DELETE", path, f"configmap {namespace}/{name}", body={"preconditions": {"uid": uid}})

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
        path = f"/api/v1/namespaces/{_quoted(self.namespace)}/pods/{_quoted(pod)}/log"
        answer = self._open(_Call("GET", path, what, query))
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
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
        answer = self._send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "your rights", body=review)
        return bool(answer["status"]["allowed"])

    def _path_of(self, name: str = "") -> str:
        return f"{_JOBS}/namespaces/{_quoted(self.namespace)}/mpijobs" + (f"/{_quoted(name)}" if name else "")

    def _send(self, method: str, path: str, what: str, query: Mapping[str, str] | None = None, body: Object | None = None) -> Object:
        answer = self._open(_Call(method, path, what, query or {}, body))
        try:
            found: Object = json.loads(answer.data)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise UnreachableError(f"{what}: the answer broke off ({type(error).__name__})") from error
        return found

    def _open(self, call: "_Call") -> urllib3.BaseHTTPResponse:
        """Send a request and return the answer, of which the head was read."""
        kind = "application/merge-patch+json" if call.method == "PATCH" else "application/json"
        headers = {"Accept": "application/json"} | ({"Content-Type": kind} if call.body is not None else {})
        try:
            made = self._client.param_serialize(
                method=call.method,
                resource_path=call.path,
                query_params=list(call.query.items()),
                header_params=headers,
                body=call.body,
                auth_settings=["BearerToken"],
            )
            answer: urllib3.BaseHTTPResponse = self._client.call_api(*made, _request_timeout=_TIMEOUT).response
            if answer.status < 300:  # noqa: PLR2004 - success
                return answer
            raise _error(call.what, answer.status, answer.data)
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            raise UnreachableError(f"{call.what}: the API server does not answer ({_cause(error)}). Is the cluster up?") from error


class _Call(NamedTuple):
    """A request; `what` is what it is about, for errors."""

    method: str
    path: str
    what: str
    query: Mapping[str, str]
    body: Object | None = None


def _load(context: str, kubeconfig: str) -> tuple[client.ApiClient, str]:
    """Return a client and the namespace of its context."""
    settings: Any = client.Configuration()
    try:
        if not kubeconfig and not context and not _has_kubeconfig():
            in_cluster: Any = config
            in_cluster.load_incluster_config(settings)
            return client.ApiClient(settings), _SERVICE_ACCOUNT.read_text(encoding="utf-8").strip()
        loader = _loader(context, kubeconfig)
        loader.load_and_set(settings)
        return client.ApiClient(settings), loader.current_context["context"].get("namespace") or ""
    except config.ConfigException as error:
        raise _no_cluster(str(error)) from error
    except (yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise _no_cluster(f"the kubeconfig cannot be used ({type(error).__name__}: {error})") from error


def _no_cluster(cause: str) -> UnreachableError:
    return UnreachableError(f"no cluster: {' '.join(cause.split())}. Name a kubeconfig with --kubeconfig or $KUBECONFIG, as for kubectl")


def _loader(context: str, kubeconfig: str) -> Any:
    """Return what reads one context of the kubeconfig; no other one is needed."""
    kinds: Any = kube_config
    files = kinds.KubeConfigMerger(kubeconfig or kinds.KUBE_CONFIG_DEFAULT_LOCATION)
    return kinds.KubeConfigLoader(files.config, context or None, config_base_path=None, config_persister=files.save_changes)


def _has_kubeconfig() -> bool:
    return bool(os.environ.get("KUBECONFIG")) or (Path.home() / ".kube" / "config").exists()


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _items(answer: Object) -> Sequence[Object]:
    items: Sequence[Object] = answer["items"]
    return items


def _cause(error: Exception) -> str:
    return type(getattr(error, "reason", None) or error).__name__


def _error(what: str, code: int, body: bytes) -> ClientError:
    """Return an answer that is an error, in the API server's own words."""
    try:
        message = str(json.loads(body)["message"])
    except (TypeError, ValueError, KeyError):
        message = body.decode(errors="replace").strip()[:200] or f"status {code}"
    if code == 401:  # noqa: PLR2004 - Unauthorized
        message = "the API server does not accept the credentials of the kubeconfig"
    elif "page not found" in message or "could not find the requested resource" in message:
        message = "the cluster does not know this resource; for MPIJobs, install the operator"
    other = UnreachableError if code >= 500 else ClientError  # noqa: PLR2004 - the server's fault: it may answer the next time
    if "failed calling webhook" in message:
        other = NotNowError
    return _ERRORS.get(code, other)(f"{what}: {message}")
