"""What is sent to an API server, and what its errors become."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from fakes.client_api import pod, stored
from mpiop.client import ClientError, ConflictError, ForbiddenError, InvalidError, NotFoundError, UnreachableError
from mpiop.client.api import LogOptions
from mpiop.client.cluster import Cluster
from mpiop.client.errors import NoClusterError, NotNowError, UnauthenticatedError

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team/mpijobs"


class Silent(bytes):
    """The first piece of a body of which no other comes."""

    __slots__ = ()


@dataclass
class Server:
    """Answers each request with the next answer: a status and a body."""

    url: str = ""
    is_over: threading.Event = field(default_factory=threading.Event)
    answers: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, str, Any]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    script = Server()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind = self.headers.get("Content-Type") or ""
            script.requests.append((self.command, self.path, kind, json.loads(body) if body else None))
            status, answer = script.answers.pop(0)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            if isinstance(data, Silent):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                script.is_over.wait(5)
                return
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - as http.server calls them

        def log_message(self, *_args: Any) -> None:
            """Log nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    script.url = f"http://127.0.0.1:{http.server_port}"
    yield script
    script.is_over.set()
    http.shutdown()
    thread.join()
    http.server_close()


def write_kubeconfig(folder: Path, url: str, **changes: Any) -> str:
    path = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u", "namespace": "team"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "one", "context": context}, {"name": "two", "context": context | {"namespace": "other"}}],
    }
    path.write_text(yaml.safe_dump(config | changes))
    return str(path)


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Cluster:
    return Cluster(kubeconfig=write_kubeconfig(tmp_path, server.url))


def test_jobs_and_pods_are_read(cluster: Cluster, server: Server) -> None:
    server.answers = [
        (200, stored()),
        (200, {"items": [stored()]}),
        (200, {"items": []}),
        (200, {"items": [pod("a")]}),
        (200, {"items": []}),
        (200, {"items": []}),
    ]
    assert cluster.job("pi")["metadata"]["name"] == "pi"
    assert len(cluster.jobs()) == 1
    assert cluster.jobs(everywhere=True) == []
    assert len(cluster.pods("pi")) == 1
    assert cluster.events("u-1") == []
    assert cluster.within("other").jobs() == []
    assert [request[1] for request in server.requests] == [
        f"{JOBS}/pi",
        JOBS,
        "/apis/kubeflow.org/v2beta1/mpijobs",
        "/api/v1/namespaces/team/pods?labelSelector=training.kubeflow.org/job-name%3Dpi%2Ctraining.kubeflow.org/operator-name%3Dmpi-operator",
        "/api/v1/namespaces/team/events?fieldSelector=involvedObject.uid%3Du-1",
        "/apis/kubeflow.org/v2beta1/namespaces/other/mpijobs",
    ]


def test_writes_are_what_was_asked_for(cluster: Cluster, server: Server) -> None:
    server.answers = [
        (201, stored()),
        (201, stored()),
        (200, stored()),
        (200, {}),
        (201, {}),
        (200, {}),
        (201, {}),
        (201, {}),
        (201, {"status": {"allowed": True}}),
    ]
    cluster.create_job(stored())
    cluster.create_job({**stored(), "metadata": {"generateName": "pi-"}}, is_dry_run=True)
    cluster.patch_job("pi", {"spec": {}})
    cluster.delete_job(stored())
    cluster.create_config_map({"metadata": {}})
    cluster.patch_config_map("files", {"metadata": {}})
    cluster.check_pod({"metadata": {"labels": {"a": "b"}}, "spec": {}})
    cluster.check_pod({"metadata": None, "spec": {}})
    assert cluster.may("get", "", "pods/log")
    methods = [(method, path, kind.partition("+")[0]) for method, path, kind, _ in server.requests]
    assert methods == [
        ("POST", f"{JOBS}?fieldValidation=Strict", "application/json"),
        ("POST", f"{JOBS}?fieldValidation=Strict&dryRun=All", "application/json"),
        ("PATCH", f"{JOBS}/pi", "application/merge-patch"),
        ("DELETE", f"{JOBS}/pi", "application/json"),
        ("POST", "/api/v1/namespaces/team/configmaps", "application/json"),
        ("PATCH", "/api/v1/namespaces/team/configmaps/files", "application/merge-patch"),
        ("POST", "/api/v1/namespaces/team/pods?fieldValidation=Strict&dryRun=All", "application/json"),
        ("POST", "/api/v1/namespaces/team/pods?fieldValidation=Strict&dryRun=All", "application/json"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json"),
    ]
    assert server.requests[3][3] == {"propagationPolicy": "Background", "preconditions": {"uid": "uid-pi"}}
    assert server.requests[6][3]["metadata"] == {"labels": {"a": "b"}, "generateName": "check-"}
    assert server.requests[7][3]["metadata"] == {"generateName": "check-"}
    review = server.requests[8][3]["spec"]["resourceAttributes"]
    assert (review["resource"], review["subresource"], review["namespace"]) == ("pods", "log", "team")


def test_dates_of_yaml_are_sent_as_texts(cluster: Cluster, server: Server) -> None:
    server.answers = [(201, stored())]
    cluster.create_job(stored() | {"metadata": {"name": "pi", "annotations": yaml.safe_load("{since: 2026-01-02, number: 3}")}})
    assert server.requests[0][3]["metadata"]["annotations"] == {"since": "2026-01-02", "number": 3}


def test_a_log_is_read_in_pieces(cluster: Cluster, server: Server) -> None:
    server.answers = [(200, b"1 one\n2 two\n"), (200, b""), (200, b"")]
    assert b"".join(cluster.read_log("a", "c", LogOptions())) == b"1 one\n2 two\n"
    assert list(cluster.read_log("a", "c", LogOptions(follow=True, previous=True, since_seconds=5))) == []
    assert list(cluster.read_log("a", "c", LogOptions(since_time="2026-11-25T12:00:00.1+01:00", tail=3))) == []
    assert [request[1] for request in server.requests] == [
        "/api/v1/namespaces/team/pods/a/log?container=c&timestamps=true",
        "/api/v1/namespaces/team/pods/a/log?container=c&timestamps=true&follow=true&previous=true&sinceSeconds=5",
        "/api/v1/namespaces/team/pods/a/log?container=c&timestamps=true&sinceTime=2026-11-25T12%3A00%3A00.1%2B01%3A00&tailLines=3",
    ]


def test_a_log_that_is_silent_for_long_ends_where_it_is_followed(cluster: Cluster, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.connection.TIMEOUT", urllib3.Timeout(connect=5, read=0.1))
    server.answers = [(200, Silent(b"1 one\n")), (200, Silent(b"1 one\n"))]
    assert b"".join(cluster.read_log("a", "c", LogOptions(follow=True))) == b"1 one\n"
    with pytest.raises(UnreachableError, match="log of container c of pod team/a: the API server sends nothing more"):
        list(cluster.read_log("a", "c", LogOptions()))


def test_a_pod_is_found_with_the_right_to_list(cluster: Cluster, server: Server) -> None:
    server.answers = [(200, {"items": [pod("a")]}), (200, {"items": []})]
    assert cluster.pod("a")["metadata"]["name"] == "a"
    with pytest.raises(NotFoundError, match="pod team/b"):
        cluster.pod("b")
    assert server.requests[0][1] == "/api/v1/namespaces/team/pods?fieldSelector=metadata.name%3Da"


QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"


@pytest.mark.parametrize(
    ("status", "body", "kind", "sentence"),
    [
        (404, {"message": 'mpijobs "pi" not found'}, NotFoundError, r'job team/pi: mpijobs "pi" not found'),
        (404, b"404 page not found\n", NotFoundError, "the cluster does not know this resource; for MPIJobs, install the operator"),
        (403, {"message": "forbidden: no"}, ForbiddenError, "job team/pi: forbidden: no"),
        (
            401,
            {"message": "Unauthorized"},
            UnauthenticatedError,
            r"does not accept the credentials of kubeconfig /.*, context 'one' \(cluster 'c', user 'u'\); log in again",
        ),
        (409, {"message": "changed"}, ConflictError, "changed"),
        (422, {"message": "invalid"}, InvalidError, "invalid"),
        (
            422,
            {"message": f"limits.memory: Invalid value: \"8GB\": limits.memory in body should match '{QUANTITY}'"},
            InvalidError,
            "in body must be a number with or without a unit, such as 8Gi, 2 or 500m$",
        ),
        (
            400,
            {"message": "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
            InvalidError,
            "quantities must be a number with or without a unit, such as 8Gi, 2 or 500m$",
        ),
        (
            422,
            {"message": "a name must be lower case (e.g. 'a-b', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), or empty"},
            InvalidError,
            r"a name must be lower case \(e.g. 'a-b'\), or empty$",
        ),
        (429, {"message": "too many requests"}, NotNowError, "job team/pi: too many requests"),
        (500, {"message": 'failed calling webhook "a": no endpoints'}, NotNowError, "failed calling webhook"),
        (500, b"", UnreachableError, "status 500"),
        (503, {"message": "the API server shuts down"}, UnreachableError, "the API server shuts down"),
        (418, b"", ClientError, "status 418"),
        (200, b"{broken", UnreachableError, "the answer broke off"),
        (200, b"5", UnreachableError, "the answer broke off"),
    ],
)
def test_errors_are_sentences(cluster: Cluster, server: Server, status: int, body: Any, kind: type[ClientError], sentence: str) -> None:
    server.answers = [(status, body)]
    with pytest.raises(kind, match=sentence) as caught:
        cluster.job("pi")
    assert type(caught.value) is kind


def test_a_server_that_is_none_of_kubernetes_is_named(cluster: Cluster, server: Server) -> None:
    server.answers = [(200, {"message": "It works!"})]
    with pytest.raises(
        UnreachableError, match=r"jobs of namespace team: the server does not answer as an API server does; check server of kube"
    ):
        cluster.jobs()


def test_a_job_that_is_gone_is_deleted(cluster: Cluster, server: Server) -> None:
    server.answers = [(404, {"message": "gone"}), (409, {"message": "another uid"})]
    cluster.delete_job(stored())
    cluster.delete_job(stored())


def test_any_path_can_be_read(cluster: Cluster, server: Server) -> None:
    server.answers = [(200, {"a": 1}), (200, {"b": 2})]
    assert cluster.get("/api/v1/nodes") == {"a": 1}
    assert cluster.get("/x?fieldSelector=metadata.name=a") == {"b": 2}
    assert server.requests[1][1] == "/x?fieldSelector=metadata.name%3Da"


def test_a_context_brings_its_namespace(server: Server, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, server.url)
    assert Cluster(kubeconfig=path).namespace == "team"
    assert Cluster(kubeconfig=path, context="two").namespace == "other"
    assert Cluster(kubeconfig=path, namespace="mine").namespace == "mine"
    with pytest.raises(UnreachableError, match=rf"^kubeconfig {path}, context 'nothing': there is no context 'nothing'"):
        Cluster(kubeconfig=path, context="nothing")


@pytest.mark.parametrize("changes", [{"current-context": None}, {"current-context": ""}, {"current-context": "gone"}])
def test_a_context_that_is_named_needs_no_current_one(server: Server, tmp_path: Path, changes: dict[str, Any]) -> None:
    assert Cluster(kubeconfig=write_kubeconfig(tmp_path, server.url, **changes), context="two").namespace == "other"


def test_names_cannot_leave_their_path(cluster: Cluster, server: Server) -> None:
    server.answers = [(404, {"message": "no"}), (404, {"message": "no"})]
    with pytest.raises(NotFoundError):
        cluster.job("a/b?c")
    with pytest.raises(NotFoundError):
        cluster.within("x/y").pods("a")
    assert server.requests[0][1] == f"{JOBS}/a%2Fb%3Fc"
    assert server.requests[1][1].startswith("/api/v1/namespaces/x%2Fy/pods?")


def test_a_server_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = Cluster(kubeconfig=write_kubeconfig(tmp_path, "http://127.0.0.1:9"))
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with pytest.raises(NoClusterError, match=r"job team/pi: the API server does not answer \(.*\)\. Is the cluster up\?"):
        away.job("pi")
    with pytest.raises(UnreachableError, match="log of container c"):
        list(away.read_log("a", "c", LogOptions()))
