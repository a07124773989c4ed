"""The operator's process: health, readiness, metrics, log, and how little it asks for."""

import json

from e2e.kubectl import Kubectl, Obj
from e2e.operator_pods import Operator
from mpiop.kube.resources import PODS, SERVICES


def test_every_replica_is_healthy_and_ready(operator: Operator) -> None:
    pods = operator.pods()
    assert len(pods) == operator.replicas_desired() == 2
    for pod in pods:
        name = pod["metadata"]["name"]
        assert operator.answer(name, "/healthz")
        assert operator.answer(name, "/readyz")
        assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]


def test_metrics_are_reached_by_the_service(operator: Operator, cluster: Kubectl) -> None:
    here = operator.kubectl.namespace
    services = cluster.within(here).read_all(SERVICES)
    [(service, port)] = [(s["metadata"]["name"], p["name"]) for s in services for p in s["spec"]["ports"]]
    answer = cluster.raw(f"/api/v1/namespaces/{here}/services/{service}:{port}/proxy/metrics")
    assert "mpi_operator_is_leader" in answer


def test_the_log_is_a_json_object_a_line(operator: Operator) -> None:
    for pod in operator.pods():
        lines = operator.log(pod["metadata"]["name"])
        assert lines
        for line in lines:
            assert {"time", "level", "msg"} <= set(line), line
            assert "PRIVATE KEY" not in json.dumps(line)


def test_nothing_was_logged_as_an_error(operator: Operator) -> None:
    for pod in operator.pods():
        assert [line for line in operator.log(pod["metadata"]["name"]) if line["level"] in {"error", "critical"}] == []


def test_it_runs_as_nobody_on_a_read_only_file_system(operator: Operator) -> None:
    for pod in (operator.kubectl.read(PODS, each["metadata"]["name"]) for each in operator.pods()):
        [container] = pod["spec"]["containers"]
        security = effective(pod, container)
        assert security["runAsNonRoot"] is True
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"


def effective(pod: Obj, container: Obj) -> Obj:
    """Return the security settings that hold for `container`."""
    return {**pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
