"""The joins of the documents, by the real Prometheus and kube-state-metrics, with the configuration that docs/monitoring.md shows."""

import contextlib
import http.client
import json
import re
import shutil
import ssl
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.clusters import IS_CURRENT, ROOT, deploy_operator, output_shown
from e2e.conftest import NAME
from e2e.jobs import held, launcher_container, launcher_pod, let_run, pi_job, until_true
from e2e.kubectl import Kubectl, NotSeenError, Obj
from e2e.neighbours import load_program, module_folder
from e2e.operator_pods import Operator
from e2e.shell import blocks_below, open_shell
from fakes.certificates import Authority
from mpiop.kube.resources import CONFIG_MAPS

GUIDE = "docs/monitoring.md"
MODULE = "k8s.io/kube-state-metrics/v2"
PROMETHEUS_IMAGE = "docker.io/prom/prometheus:stand-in"
JOIN = """ * on(pod,namespace) group_left label_replace(mpi_operator_job_infos, "pod", "$0", "launcher", ".*")"""
OF_THE_SEEDS = f"kube_pod_info{JOIN}"


SHOWN = blocks_below(GUIDE, "yaml")
MONITORING = "monitoring"


def prometheus(image: str, *, is_secure: bool = False) -> list[dict[str, Any]]:
    """Return Prometheus with the configuration and the alerts of the guide, at work every second; of secure metrics nothing else."""
    configuration = yaml.safe_load(SHOWN["Scraping"])
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    if is_secure:
        configuration["scrape_configs"] = [configuration["scrape_configs"][0] | yaml.safe_load(SHOWN["Authenticated"])]
    files = {"prometheus.yml": yaml.safe_dump(configuration), "rules.yml": SHOWN["Alerts"]}
    arguments = ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/data"]
    container = {
        "name": "prometheus",
        "image": image,
        "args": arguments,
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 1},
        "volumeMounts": [{"name": "configuration", "mountPath": "/etc/prometheus"}, {"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "configuration", "configMap": {"name": "prometheus"}}, {"name": "data", "emptyDir": {}}]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prometheus"}, "data": files},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "prometheus"},
            "spec": {"serviceAccountName": "prometheus", "containers": [container], "volumes": volumes},
        },
    ]


def right_to_see_pods(namespace: str) -> dict[str, Any]:
    """Return the right of Prometheus in `namespace`, for the namespace that it is made in."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"e2e-prometheus-of-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": namespace}],
    }


@dataclass(frozen=True)
class Prometheus:
    """Prometheus in the Pod `prometheus`."""

    here: Kubectl

    def answer(self, path: str) -> dict[str, Any]:
        """Return the data that it answers to GET `path` below its API."""
        proxy = f"/api/v1/namespaces/{self.here.namespace}/pods/prometheus:9090/proxy/api/v1"
        data: dict[str, Any] = json.loads(self.here.raw(f"{proxy}/{path}"))["data"]
        return data

    def over_time(self, expression: str) -> list[dict[str, Any]]:
        """Return the rows of `expression` over the last five minutes, with a value each 3 s."""
        now = time.time()
        words = {"query": expression.replace("$__rate_interval", "20s"), "start": now - 300, "end": now, "step": 3}
        rows: list[dict[str, Any]] = self.answer(f"query_range?{urllib.parse.urlencode(words)}")["result"]
        return rows

    def of_this_test(self, expression: str) -> str:
        """Return `expression` without the rows of other namespaces."""
        own = f'label_replace(vector(1), "namespace", "{self.here.namespace}", "", "")'
        return f"({expression}) and on(namespace) {own}"

    def until_rows(self, expression: str, count: int, *, timeout_seconds: float = 30) -> list[dict[str, str]]:
        """Return the labels of the rows of `expression` as soon as there are `count`; a scrape comes every second.

        Raises:
            NotSeenError: There were not within `timeout_seconds`.
        """
        deadline, rows = time.monotonic() + timeout_seconds, list[dict[str, str]]()
        while time.monotonic() < deadline:
            rows = [row["metric"] for row in self.answer(f"query?query={urllib.parse.quote(expression)}")["result"]]
            if len(rows) == count:
                return rows
        raise NotSeenError(f"{expression}: {count} rows not seen in {timeout_seconds:g} s; last: {rows}")


@pytest.fixture(scope="module")
def monitored(module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Prometheus]:
    """Prometheus and kube-state-metrics next to the operator."""
    if IS_CURRENT:
        pytest.skip("the user's own cluster gets no monitoring")
    here, folder = module_namespace, tmp_path_factory.mktemp("monitoring")
    manifest = here.run("kustomize", str(module_folder("kube-state-metrics", MODULE) / "examples" / "standard"))
    [image] = re.findall(r"image: (\S+)", manifest)
    with output_shown(request):
        load_program(NAME, "kube-state-metrics", "/kube-state-metrics", image, folder / "kube-state-metrics.tar")
        load_program(NAME, "prometheus", "/bin/prometheus", PROMETHEUS_IMAGE, folder / "prometheus.tar")
    system = here.within("kube-system")
    system.run("apply", "-f", "-", stdin=manifest)
    here.within("mpi-operator").apply(right_to_see_pods(here.namespace))
    here.apply(*prometheus(PROMETHEUS_IMAGE))
    system.run("rollout", "status", "deployment/kube-state-metrics", "--timeout=60s")
    here.run("wait", "--for=condition=Ready", "pod/prometheus", "--timeout=60s")
    yield Prometheus(here)
    system.run("delete", "-f", "-", "--wait=false", stdin=manifest)
    here.within("mpi-operator").run("delete", "rolebinding", f"e2e-prometheus-of-{here.namespace}")


@pytest.fixture(scope="module")
def launchers(monitored: Prometheus) -> dict[str, str]:
    """The launcher Pod of a job that has finished and of one that runs."""
    here = monitored.here
    found = dict[str, str]()
    here.apply(held(pi_job("finished")))
    found["finished"] = launcher_pod(here)
    let_run(here, found["finished"])
    until_true(here, "finished", "Succeeded")
    here.apply(held(pi_job("running")))
    until_true(here, "running", "Running")
    labels = "mpi_job_name=running,mpi_role_type=launcher"
    found["running"] = here.run("get", "pods", "-l", labels, "-o", "name").strip().removeprefix("pod/")
    return found


def test_the_join_of_the_documents_returns_a_row_for_a_running_and_a_finished_job(monitored: Prometheus, launchers: dict[str, str]) -> None:
    assert OF_THE_SEEDS in (ROOT / GUIDE).read_text(encoding="utf-8")
    rows = monitored.until_rows(monitored.of_this_test(OF_THE_SEEDS), 2)
    assert {row["pod"] for row in rows} == set(launchers.values())
    assert all(row["node"] and row["pod_ip"] for row in rows)


def test_every_join_of_the_guide_returns_a_row_for_each_job(monitored: Prometheus, launchers: dict[str, str]) -> None:
    expressions = re.findall(r"`(kube_\w+.*? group_left .*?)`", (ROOT / GUIDE).read_text(encoding="utf-8"))
    assert len(expressions) == 3
    for expression in expressions:
        assert monitored.until_rows(monitored.of_this_test(expression), 2), expression
    assert launchers


def test_a_join_shows_which_launchers_run(monitored: Prometheus, launchers: dict[str, str]) -> None:
    which = f'kube_pod_status_phase{{phase="Running"}}{JOIN}'
    assert which in (ROOT / GUIDE).read_text(encoding="utf-8")
    [row] = monitored.until_rows(monitored.of_this_test(f"{which} == 1"), 1)
    assert row["pod"] == launchers["running"]


def test_both_replicas_are_scraped_and_one_of_them_leads(monitored: Prometheus) -> None:
    assert len(monitored.until_rows("mpi_operator_is_leader", 2)) == 2
    monitored.until_rows("mpi_operator_is_leader == 1", 1)


def test_prometheus_takes_the_alerts_and_none_of_them_fires(monitored: Prometheus) -> None:
    [group] = monitored.answer("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in yaml.safe_load(SHOWN["Alerts"])["groups"][0]["rules"]]
    assert {rule["state"] for rule in group["rules"]} == {"inactive"}


def failing_job(name: str) -> Obj:
    """Return a job that fails at once, without another try."""
    job = pi_job(name, workers=1)
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    launcher_container(job)["command"] = ["false"]
    return job


def test_the_alerts_about_jobs_hold_when_jobs_wait_or_fail(monitored: Prometheus) -> None:
    """Their expressions are asked for: an alert would fire a quarter of an hour later."""
    expressions = {rule["alert"]: rule["expr"] for rule in yaml.safe_load(SHOWN["Alerts"])["groups"][0]["rules"]}
    stalled = pi_job("stalled", workers=1)
    launcher_container(stalled)["image"] = "localhost/no-such-image:1"
    monitored.here.apply(stalled, failing_job("failing-0"))
    [row] = monitored.until_rows(expressions["MPIJobsAreStalled"], 1)
    assert row == {"state": "ImagePull"}
    # A rise is counted from the first value that Prometheus has seen.
    monitored.until_rows("mpiop_job_failures_total > 0", 1, timeout_seconds=60)
    monitored.here.apply(*(failing_job(f"failing-{number}") for number in range(1, 8)))
    [row] = monitored.until_rows(expressions["MPIJobsFail"], 1, timeout_seconds=90)
    assert row == {"reason": "BackoffLimitExceeded/Error"}
    monitored.here.run("delete", "mpijob", "stalled", *(f"failing-{number}" for number in range(8)))
    monitored.until_rows(expressions["MPIJobsAreStalled"], 0)


def test_every_panel_of_the_dashboard_has_data(
    monitored: Prometheus, launchers: dict[str, str], operator: Operator, tmp_path: Path
) -> None:
    """The answers stay in build/, for the picture in the guide (hack/dashboard-picture)."""
    assert launchers
    try:
        open_shell(monitored.here, ROOT, tmp_path / "kubeconfig").follow("docs/monitoring.md", "Dashboard")
        found = operator.kubectl.read(CONFIG_MAPS, "mpi-operator-dashboard")
    finally:
        operator.kubectl.run("delete", "configmap", "mpi-operator-dashboard", "--ignore-not-found")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    panels = json.loads(found["data"]["grafana-dashboard.json"])["panels"]
    answers = [{"panel": panel, "results": [monitored.over_time(target["expr"]) for target in panel["targets"]]} for panel in panels]
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "dashboard.json").write_text(json.dumps(answers), encoding="utf-8")
    empty = [answer["panel"]["title"] for answer in answers if not all(map(has_numbers, answer["results"]))]
    assert empty == []


def has_numbers(rows: list[Obj]) -> bool:
    """Return whether there is a number in the rows of a range query; a quantile of nothing is none."""
    return any(value != "NaN" for row in rows for _, value in row["values"])


def test_the_metrics_can_be_read_by_hand(monitored: Prometheus, operator: Operator, tmp_path: Path) -> None:
    assert operator.pods()
    shown = open_shell(monitored.here, ROOT, tmp_path / "kubeconfig").follow("docs/monitoring.md", "Monitoring")
    assert "mpi_operator_is_leader" in shown


def test_a_job_that_is_deleted_leaves_the_join(monitored: Prometheus, launchers: dict[str, str]) -> None:
    """Comes after the tests that read what it deletes, and before the operator is another."""
    assert launchers
    monitored.here.run("delete", "mpijob", "finished", "running")
    monitored.until_rows(f'mpi_operator_job_infos{{namespace="{monitored.here.namespace}"}}', 0)


# Secure metrics: they need an operator with another flag.


def forget_secure_metrics(cluster: Kubectl) -> None:
    """Remove what the guide's commands and these tests made, were they ended in between or not."""
    names = "mpi-operator-metrics-auth", "mpi-operator-metrics-reader", "prometheus-reads-mpi-operator"
    cluster.run("delete", "clusterrole,clusterrolebinding", *names, "--ignore-not-found")
    here = cluster.within("mpi-operator")
    here.run("delete", "rolebinding/e2e-prometheus-of-monitoring", "secret/mpi-operator-metrics", "--ignore-not-found")
    cluster.run("delete", "namespace", MONITORING, "--ignore-not-found")


@pytest.fixture(scope="module")
def secured(monitored: Prometheus, operator: Operator, cluster: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """The operator as the guide secures its metrics, and a Prometheus as the guide has it for that."""
    assert monitored
    forget_secure_metrics(cluster)
    here = cluster.within(MONITORING)
    cluster.run("create", "namespace", MONITORING)
    here.apply(*prometheus(PROMETHEUS_IMAGE, is_secure=True))
    operator.kubectl.apply(right_to_see_pods(MONITORING))
    shell = open_shell(here, ROOT, tmp_path_factory.mktemp("secured") / "kubeconfig")
    assert shell.follow("docs/monitoring.md", "Authenticated", timeout_seconds=200).endswith("yes\n")
    operator.until_led()
    here.run("wait", "--for=condition=Ready", "pod/prometheus", "--timeout=60s")
    yield Prometheus(here)
    forget_secure_metrics(cluster)
    deploy_operator(cluster)
    operator.wait_until_ready()


def asked_by(token: str, port: int, authority: str = "") -> tuple[int, str, str]:
    """Return status, challenge and text of the metrics for the bearer of `token` ("" is nobody); TLS trusts `authority`, or all."""
    context = ssl.create_default_context(cadata=authority) if authority else ssl._create_unverified_context()  # noqa: S323 - self-signed
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("WWW-Authenticate", ""), answer.read().decode()


def test_secure_metrics_are_scraped_by_prometheus_with_its_own_token(secured: Prometheus) -> None:
    assert len(secured.until_rows("up == 1", 2, timeout_seconds=60)) == 2
    assert len(secured.until_rows("mpi_operator_is_leader", 2)) == 2
    secured.until_rows("mpi_operator_is_leader == 1", 1)


def test_secure_metrics_are_refused_to_whom_the_api_server_does_not_know_or_does_not_let(secured: Prometheus, operator: Operator) -> None:
    allowed, other = (secured.here.run("create", "token", name).strip() for name in ("prometheus", "default"))
    pods = operator.pods()
    assert len(pods) == operator.replicas_desired() == 2
    for pod in pods:
        with operator.forwarding(pod["metadata"]["name"]) as port:
            assert asked_by("", port)[:2] == (401, "Bearer")
            assert asked_by("nobody.issued.this", port)[:2] == (401, "Bearer")
            status, _, text = asked_by(other, port)
            assert (status, f"system:serviceaccount:{MONITORING}:default may not get /metrics" in text) == (403, True)
            status, _, text = asked_by(allowed, port)
            assert (status, "mpi_operator_is_leader" in text) == (200, True)
        log = operator.kubectl.run("logs", pod["metadata"]["name"])
        assert "scrape refused" in log
        assert not [token for token in (allowed, other, "nobody.issued.this") if token in log]


def test_a_review_a_minute_is_all_that_scrapes_cost_the_api_server(secured: Prometheus) -> None:
    secured.until_rows("count_over_time(up[5m]) >= 20", 2, timeout_seconds=60)
    reviews = secured.answer("query?query=" + urllib.parse.quote('mpiop_api_requests_total{resource="tokenreviews",code="201"}'))["result"]
    assert len(reviews) == 2
    # Of Prometheus' own token one or two, of the tests before three or four.
    assert all(1 <= float(row["value"][1]) <= 8 for row in reviews), reviews


def test_secure_metrics_have_the_certificate_of_a_secret(secured: Prometheus, operator: Operator, cluster: Kubectl, tmp_path: Path) -> None:
    authority = Authority()
    authority.issue("mpi-operator").write(tmp_path / "tls.crt", tmp_path / "tls.key")
    files = f"--cert={tmp_path / 'tls.crt'}", f"--key={tmp_path / 'tls.key'}"
    operator.kubectl.run("create", "secret", "tls", "mpi-operator-metrics", *files)
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    overlay = tmp_path / "manifests" / "overlays" / "own"
    overlay.mkdir()
    text = f"resources: [../secure-metrics]\n{SHOWN['A certificate of your own']}"
    (overlay / "kustomization.yaml").write_text(text, encoding="utf-8")
    cluster.run("apply", "-k", str(overlay))
    operator.wait_until_ready()
    token = secured.here.run("create", "token", "prometheus").strip()
    with operator.forwarding(operator.pods()[0]["metadata"]["name"]) as port:
        assert asked_by(token, port, authority.certificate)[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            asked_by(token, port, Authority("another").certificate)
