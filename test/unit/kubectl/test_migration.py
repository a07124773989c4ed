"""`doctor --migrate` finds what keeps mpiop from replacing another operator, and what to do about it."""

import copy
from typing import Any

import pytest

from fakes.client_api import FakeApi, stored
from mpiop.cli.flags import GROUPS, IGNORED
from mpiop.client.errors import ForbiddenError
from mpiop.kubectl.rivals import DIFFERENT_FLAGS, flags_of

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"
OLD_JOBS = "/apis/kubeflow.org/v1/mpijobs"
DEPLOYMENTS = "/apis/apps/v1/deployments"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SERVICE = "/api/v1/namespaces/kueue-system/services/webhook"
TRAINING_IMAGE = "docker.io/kubeflow/training-operator:v1-5170a36"
MPI_IMAGE = "registry.example.com:5000/mirror/mpi-operator@sha256:1"


def crd(*versions: str, stored_as: tuple[str, ...] = (), served: bool = True) -> dict[str, Any]:
    rows = [{"name": version, "served": served or version == "v2beta1"} for version in versions]
    return {"spec": {"versions": rows}, "status": {"storedVersions": list(stored_as or versions)}}


def deployment(name: str, image: str, *arguments: str, namespace: str = "kubeflow", **container: Any) -> dict[str, Any]:
    containers = [{"image": image, "args": list(arguments), **container}]
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": {"spec": {"containers": containers}}}}


def webhook(policy: str = "Fail", versions: str = "v2beta1", **client: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": [versions], "resources": ["mpijobs", "mpijobs/status"]}
    config = client or {"service": {"namespace": "kueue-system", "name": "webhook"}}
    return {
        "metadata": {"name": "kueue"},
        "webhooks": [{"name": "m.kb.io", "failurePolicy": policy, "clientConfig": config, "rules": [rule]}],
    }


def old_job(name: str = "pi", **spec: Any) -> dict[str, Any]:
    job = copy.deepcopy(stored(name))
    job["apiVersion"] = "kubeflow.org/v1"
    job["spec"] |= spec
    return job


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    api.answers |= {
        CRD: crd("v2beta1"),
        DEPLOYMENTS: {"items": []},
        MUTATING: {"items": []},
        VALIDATING: {"items": []},
        OLD_JOBS: {"items": []},
    }
    return api


def test_nothing_is_in_the_way(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored()
    code, out, _ = mpi("doctor", "--migrate")
    assert (code, out.splitlines()) == (
        0,
        [
            "ok       CRD mpijobs.kubeflow.org stores only v2beta1: mpiop's CRD can replace it",
            "ok       no other operator serves MPIJobs",
            "ok       no webhook checks or changes MPIJobs",
        ],
    )
    del api.answers[CRD]
    assert mpi("doctor", "--migrate")[1].startswith("ok       there is no CRD mpijobs.kubeflow.org yet: installing mpiop creates it\n")


@pytest.mark.parametrize(
    ("path", "answer", "line", "advice"),
    [
        pytest.param(
            CRD,
            crd("v1"),
            "problem  CRD mpijobs.kubeflow.org lists v1 in status.storedVersions, so the API server will refuse mpiop's CRD",
            "Save your MPIJobs, then delete the CRD, which deletes all MPIJobs: kubectl delete crd mpijobs.kubeflow.org",
            id="a stored version",
        ),
        pytest.param(
            CRD,
            crd("v1alpha2", "v2beta1", stored_as=("v1alpha2", "v2beta1"), served=False),
            "note     the CRD does not serve v1alpha2, so doctor cannot list the MPIJobs that are stored as v1alpha2",
            "",
            id="a stored version that is not served",
        ),
        pytest.param(CRD, ForbiddenError("no"), "unknown  you may not look: no", "", id="the CRD cannot be read"),
        pytest.param(DEPLOYMENTS, ForbiddenError("no"), "unknown  you may not look: no", "", id="Deployments cannot be listed"),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("to", TRAINING_IMAGE)]},
            "problem  Deployment to in namespace kubeflow, a Training Operator, watches MPIJobs",
            "Add --enable-scheme for each other kind to its args: "
            "--enable-scheme=tfjob, --enable-scheme=pytorchjob, --enable-scheme=xgboostjob",
            id="the Training Operator, by its image",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("training-operator", "mirror/x", "--enable-scheme", "MPIJob")]},
            "problem  Deployment training-operator in namespace kubeflow, a Training Operator, watches MPIJobs",
            "",
            id="the Training Operator, by its name",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("to", TRAINING_IMAGE, "--enable-scheme=tfjob")]},
            "ok       Deployment to in namespace kubeflow, a Training Operator, does not watch MPIJobs",
            "",
            id="a Training Operator without MPIJobs",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("to", TRAINING_IMAGE, "--gang-scheduler-name=volcano")]},
            "note     Deployment to in namespace kubeflow has the flag --gang-scheduler-name=volcano",
            "Set it for mpiop: --gang-scheduling=volcano",
            id="a flag of the Training Operator",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("mpi-operator", MPI_IMAGE, namespace="mpi-operator")]},
            "note     Deployment mpi-operator in namespace mpi-operator is Kubeflow's MPI operator, which mpiop's manifest replaces",
            "Replace it: kubectl apply -f deploy/v2beta1/mpi-operator.yaml",
            id="Kubeflow's MPI operator where mpiop's manifest has it",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("mpi", MPI_IMAGE)]},
            "problem  Deployment mpi in namespace kubeflow is Kubeflow's MPI operator, which no manifest of mpiop replaces",
            "Delete it before you install mpiop: kubectl --namespace kubeflow delete deployment mpi",
            id="Kubeflow's MPI operator elsewhere",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("mpi-operator", MPI_IMAGE, "-alsologtostderr", "--kube-api-qps", "5")]},
            "note     its flag --kube-api-qps=5 also limits mpiop, which has no limit by default",
            "Omit it.",
            id="a flag that means something else",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("mpi-operator", MPI_IMAGE, "--namespace=a", "--gang-scheduling=volcano", "--lock-namespace=b")]},
            "note     mpiop's manifest does not have its flags --namespace=a --gang-scheduling=volcano",
            "Set them in args of your overlay, or in flags of the chart.",
            id="flags to keep",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [deployment("mpi-operator", "x/mpi-operator", readinessProbe={"httpGet": {"path": "/readyz"}})]},
            "ok       no other operator serves MPIJobs",
            "",
            id="mpiop itself",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"items": [{**(to := deployment("to", TRAINING_IMAGE)), "spec": {**to["spec"], "replicas": 0}}]},
            "ok       no other operator serves MPIJobs",
            "",
            id="an operator without replicas",
        ),
        pytest.param(
            VALIDATING,
            {"items": [webhook()]},
            "problem  webhook m.kb.io makes the API server refuse each MPIJob, because Service kueue-system/webhook does not exist",
            "Delete the webhook: kubectl delete validatingwebhookconfiguration kueue",
            id="a webhook without a server",
        ),
        pytest.param(
            MUTATING,
            {"items": [webhook("Ignore")]},
            "note     webhook m.kb.io is skipped, because Service kueue-system/webhook does not exist",
            "Delete the webhook: kubectl delete mutatingwebhookconfiguration kueue",
            id="a webhook without a server that may fail",
        ),
        pytest.param(
            MUTATING, {"items": [webhook(versions="v1")]}, "ok       no webhook checks or changes MPIJobs", "", id="a webhook of v1"
        ),
        pytest.param(
            MUTATING,
            {"items": [webhook(url="https://x")]},
            "note     webhook m.kb.io at https://x sees each MPIJob",
            "Keep its server running.",
            id="a webhook outside the cluster",
        ),
    ],
)
def test_it_reports_what_is_in_the_way_and_what_to_do(mpi: Any, api: FakeApi, path: str, answer: Any, line: str, advice: str) -> None:
    api.answers[path] = answer
    code, out, _ = mpi("doctor", "--migrate")
    assert f"{line}\n" + (f"         {advice}\n" if advice else "") in out
    assert code == int("problem  " in out)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({}, "ok       webhook m.kb.io of Service kueue-system/webhook sees each MPIJob"),
        (ForbiddenError("no"), "unknown  webhook m.kb.io sees each MPIJob, and you may not read its Service: no"),
    ],
)
def test_a_webhook_whose_server_is_there_does_not_block(mpi: Any, api: FakeApi, answer: Any, line: str) -> None:
    api.answers |= {MUTATING: {"items": [webhook()]}, SERVICE: answer}
    code, out, _ = mpi("doctor", "--migrate")
    assert (code, line in out) == (0, True), out


def test_jobs_of_the_old_version_are_named_with_what_to_edit(mpi: Any, api: FakeApi) -> None:
    job = old_job(cleanPodPolicy="Running", mainContainer="a")
    replica_specs = job["spec"]["mpiReplicaSpecs"]
    replica_specs["Launcher"]["restartPolicy"] = "Always"
    replica_specs["Launcher"]["template"]["spec"]["containers"][0]["command"] = ["mpirun", "-mca", "plm_rsh_agent", "/etc/mpi/kubexec.sh"]
    replica_specs["Worker"]["template"]["spec"]["containers"] = [{"name": "w", "image": "pi", "command": ["sleep"], "args": ["365d"]}]
    api.answers |= {CRD: crd("v1"), OLD_JOBS: {"items": [job, *(old_job(f"x{number}") for number in range(3))]}}
    code, out, _ = mpi("doctor", "--migrate")
    assert code == 1
    for line in (
        "problem  mpiop cannot serve the MPIJobs of version v1: team/pi, team/x0, team/x1 and 1 more\n",
        "         Let them end, and save them: kubectl get mpijobs.v1.kubeflow.org --all-namespaces -o yaml >mpijobs-v1.yaml\n",
        "problem  MPIJob team/pi is not valid in v2beta1: spec.cleanPodPolicy: unknown field; spec.mainContainer: unknown field; ",
        'spec.mpiReplicaSpecs.Launcher.restartPolicy: Unsupported value: "Always"',
        "containers[0]: /etc/mpi/kubexec.sh does not exist, remove --mca plm_rsh_agent; ",
        "Worker.template.spec.containers[0].command: sleep starts no sshd, remove it\n",
        "         Edit its manifest, and check it: kubectl apply --dry-run=server -f pi.yaml\n",
    ):
        assert line in out, out


def test_jobs_of_any_shape_are_read(mpi: Any, api: FakeApi) -> None:
    shapes: list[Any] = [None, {}, {"replicas": 2, "gpus": 8}, {"mpiReplicaSpecs": {"Launcher": None, "Worker": {"template": None}}}]
    api.answers |= {CRD: crd("v1"), OLD_JOBS: {"items": [{**old_job(f"x{at}"), "spec": spec} for at, spec in enumerate(shapes)]}}
    code, out, _ = mpi("doctor", "--migrate")
    assert (code, "problem  1 more MPIJobs are not valid in v2beta1\n" in out) == (1, True), out
    assert "MPIJob team/x2 is not valid in v2beta1: spec.replicas: unknown field; spec.gpus: unknown field" in out


def test_unfinished_jobs_of_our_version_are_checked_too_where_the_user_may_list_them(
    mpi: Any, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.stored = {"bad": old_job("bad", mpiImplementation="LAM"), "done": {**stored(state="Failed"), "spec": {}}}
    jobs = api.jobs

    def own(*, everywhere: bool = False) -> Any:
        if everywhere:
            raise ForbiddenError("no")
        return jobs()

    monkeypatch.setattr(api, "jobs", own)
    code, out, _ = mpi("doctor", "--migrate")
    assert (code, out.count("is not valid"), "MPIJob team/bad is not valid in v2beta1: spec.mpiImplementation" in out) == (1, 1, True), out


def test_what_others_have_written_changes_neither_the_terminal_nor_the_lines(mpi: Any, api: FakeApi) -> None:
    api.answers[DEPLOYMENTS] = {
        "items": [deployment("training-operator", TRAINING_IMAGE, "--namespace=\x1b]0;a\x07\nok       all is well")]
    }
    _, out, _ = mpi("doctor", "--migrate")
    assert "\x1b" not in out
    assert not [line for line in out.splitlines() if line.startswith("ok       all")]


def test_a_migration_is_checked_without_a_job(mpi: Any) -> None:
    assert mpi("doctor", "--migrate", "--run")[::2] == (
        2,
        "error: --run and --migrate exclude each other; see kubectl mpi doctor --help\n",
    )


def test_flags_are_read_as_go_reads_them() -> None:
    container = {"command": ["/opt/mpi-operator", "-v=4"], "args": ["--threadiness", "2", "-alsologtostderr", "--kube-api-qps=50"]}
    assert flags_of(container) == [("v", "4"), ("threadiness", "2"), ("alsologtostderr", ""), ("kube-api-qps", "50")]


def test_the_flags_that_differ_are_those_that_the_operator_takes() -> None:
    known = {name for group in GROUPS.values() for setting in group for name in setting.flag.names}
    known |= {name for flag in IGNORED for name in flag.names}
    assert DIFFERENT_FLAGS.keys() <= known
