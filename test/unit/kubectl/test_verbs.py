"""What each verb prints and sends."""

import io
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import NOON, TAGGED, FakeApi, container, pod, raises, stored
from mpiop.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthenticatedError,
    UnreachableError,
)
from mpiop.kubectl.main import run
from mpiop.kubectl.output import to_yaml
from mpiop.kubectl.verbs import VERBS

RUN = ("run", "--image", "i", "--name", "pi", "-n", "2")


def done(api: FakeApi, name: str, state: str = "Succeeded", **status: Any) -> None:
    """Let a job that is created be in that state, with a launcher that printed something."""
    api.ends(state, **status)
    api.all_pods = [pod(f"{name}-launcher-x", role="launcher")]
    api.logs = {f"{name}-launcher-x": [b"1 [1,0]<stdout>:hello\n"]}


def test_every_verb_has_a_help_and_a_summary(mpi: Any) -> None:
    code, out, _ = mpi("--help")
    assert code == 0
    for verb in VERBS:
        assert f"{verb} {VERBS[verb].summary}" in " ".join(out.split())
        code, text, _ = mpi(verb, "--help")
        assert (code, text.startswith("Usage: kubectl mpi " + verb)) == (0, True)


@pytest.mark.parametrize("verb", VERBS)
def test_its_page_shows_what_each_verb_prints(verb: str) -> None:
    page = Path("docs/kubectl-mpi.md").read_text("utf-8")
    assert re.search(rf"^\$ (kubectl mpi|mpiop-kubectl) {verb}\b.*\n(?!```)", page, re.MULTILINE)


def test_run_shows_progress_and_output_and_ends_with_the_exit_code(mpi: Any, api: FakeApi) -> None:
    done(api, "pi")
    assert mpi(*RUN, "--", "./solver") == (0, "hello\n", "job pi\nsucceeded\njob pi succeeded\n")
    [(_, made, _)] = [request for request in api.requests if request[0] == "create"]
    assert made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def attempt(number: int, pod_name: str) -> dict[str, Any]:
    return {"number": number, "pod": pod_name, "node": "n", "exitCode": 7, "reason": "Error", "endTime": NOON}


def test_run_says_why_a_job_failed_and_ends_with_its_code(mpi: Any, api: FakeApi) -> None:
    done(api, "pi", "Failed", attempts=[attempt(1, "pi-launcher-x")])
    code, out, err = mpi(*RUN, "--rm", "--", "./solver")
    assert (code, out) == (7, "hello\n")
    assert "Job pi failed: MPIJobFailed" in err
    assert "pi" not in api.stored
    assert "kubectl mpi" not in err  # the job is gone


def test_run_can_return_at_once_or_only_show_what_it_would_send(mpi: Any, api: FakeApi) -> None:
    assert mpi(*RUN, "--detach", "--", "./solver") == (0, "pi\n", "")
    api.requests.clear()
    code, out, _ = mpi(*RUN, "--dry-run", "client", "--mount", "claim:/data", "-e", "A=b=c", "--", "./solver")
    assert (code, "claimName: claim" in out, "value: b=c" in out, api.requests) == (0, True, True, [])
    code, out, _ = mpi(*RUN, "--dry-run", "server", "--", "./solver")
    assert (code, "uid: uid-pi" in out) == (0, True)


def test_run_takes_files_along(mpi: Any, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    done(api, "pi")
    assert mpi(*RUN, "--upload", str(tmp_path), "--", "./a")[0] == 0
    code, out, _ = mpi(*RUN, "--upload", str(tmp_path), "--dry-run", "client", "--", "./a")
    assert (code, "mountPath: /upload" in out) == (0, True)


def test_an_array_runs_a_few_at_a_time(mpi: Any, api: FakeApi) -> None:
    done(api, "pi")
    code, out, err = mpi(*RUN, "--array", "1-3,7", "--parallel", "2", "--", "./a")
    assert (code, err) == (0, "4 of 4 jobs succeeded\n")
    assert out.splitlines() == [f"pi-{number}: succeeded" for number in (1, 2, 3, 7)]
    environment = [container(request[1], "Worker")["env"] for request in api.requests if request[0] == "create"]
    assert environment == [[{"name": "MPIOP_ARRAY_INDEX", "value": str(number)}] for number in (1, 2, 3, 7)]
    done(api, "pi", "Failed")
    code, out, err = mpi(*RUN[:-2], "--name", "more", "--array", "1-2", "--", "./a")
    assert (code, err) == (1, "0 of 2 jobs succeeded\n")


def test_an_array_goes_on_while_the_api_server_is_away_and_after_a_deletion(mpi: Any, api: FakeApi) -> None:
    done(api, "pi")
    api.steps = [raises(UnreachableError("no answer")), raises(NotFoundError("no job"))]
    code, out, err = mpi(*RUN, "--array", "1-2", "--parallel", "1", "--", "./a")
    assert (code, err) == (1, "1 of 2 jobs succeeded\n")
    assert out.splitlines() == ["pi-1: somebody deleted it before it ended", "pi-2: succeeded"]


def test_an_array_that_is_stopped_says_what_goes_on(mpi: Any, api: FakeApi) -> None:
    api.steps = [raises(KeyboardInterrupt())]
    code, _, err = mpi(*RUN, "--array", "1-3", "--parallel", "2", "--", "./a")
    assert code == 130
    assert "2 jobs keep running: kubectl mpi list, or kubectl mpi delete pi-1 pi-2; not started: --array 3\n" in err


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(mpi: Any, api: FakeApi) -> None:
    api.steps = [raises(KeyboardInterrupt())]
    code, _, err = mpi(*RUN, "--", "./a")
    assert (code, "pi" in api.stored) == (130, True)
    assert "Reattach with: kubectl mpi logs -f pi --namespace team\n" in err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("run", "--", "./a"), 2, "there is no image: give one with --image"),
        ((*RUN, "-e", "A", "--", "./a"), 2, "'A' is not of the form --env NAME=VALUE"),
        ((*RUN, "--array", "5-1", "--", "./a"), 2, "write indexes such as 1-20"),
        ((*RUN, "--upload", "/nowhere/at/all", "--", "./a"), 2, "does not exist"),
        (("why", "nothing"), 3, "job team/nothing: not found"),
        (("logs", "old", "--rank", "1"), 2, "does not name ranks"),
        (("logs", "old", "--since", "soon"), 2, "'soon' is not a duration"),
        (("logs", "old", "--attempt", "2"), 3, "no failed attempt 2; known are: none"),
        (("logs", "old", "--worker", "9"), 3, "does not have a Pod of worker 9"),
        (("shell", "old"), 3, "has no Pod of a launcher: it is Succeeded"),
        (("exec", "old", "--worker", "1", "--", "ls"), 3, "has no Pod of worker 1"),
        (("cp", "a", "b"), 2, "one of the two must be JOB:PATH"),
        (("top", "old"), 1, "install metrics-server"),
        (("delete", "running"), 2, "pass --yes"),
        (("submit", "/nowhere"), 2, "No such file"),
        (("convert", "/nowhere", "--image", "i"), 2, "No such file"),
    ],
)
def test_a_mistake_is_one_sentence_and_a_code(mpi: Any, api: FakeApi, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    api.stored |= {"old": stored("old", state="Succeeded"), "running": stored("running", state="Running")}
    found, _, err = mpi(*arguments)
    assert (found, sentence in err) == (code, True), err
    assert "Traceback" not in err


def test_list_shows_what_kubectl_shows_and_more(mpi: Any, api: FakeApi) -> None:
    assert mpi("list") == (0, "", "No MPIJobs found in namespace team.\n")
    api.stored["pi"] = stored(state="Running")
    code, out, _ = mpi("list", "-o", "wide")
    header, row = (" ".join(line.split()) for line in out.splitlines())
    assert header == "NAME STATE WORKERS RESTARTS DURATION AGE ATTEMPTS IMAGE NODE MESSAGE"
    assert row.startswith("pi Running 2/2 0 ")
    assert mpi("list", "-A")[1].splitlines()[1].split()[:2] == ["team", "pi"]
    assert mpi("list", "-o", "name")[1] == "mpijob.kubeflow.org/pi\n"
    found = json.loads(mpi("list", "-o", "json")[1])
    assert (found["kind"], [job["metadata"]["name"] for job in found["items"]]) == ("List", ["pi"])
    assert "kind: MPIJob" in mpi("list", "-o", "yaml")[1]
    assert code == 0


def test_describe_shows_conditions_tries_pods_and_why(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Running", startTime=NOON, attempts=[attempt(1, "pi-launcher-x")])
    api.all_pods = [pod("pi-worker-10"), pod("pi-worker-9"), pod("pi-launcher-x", role="launcher")]
    code, out, _ = mpi("describe", "pi")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines() if line.startswith("  pi-")]
    assert names == ["pi-launcher-x", "pi-worker-9", "pi-worker-10"]
    for word in ("MPIJobRunning", "Failed attempts:", "Job pi: running: 2/2 workers."):
        assert word in out
    assert mpi("why", "pi")[1].startswith("Job pi: running")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--rank", "1", "--since", "5m"), "one\n"),
        (("--worker", "1"), "sshd\n"),
        (("--attempt", "1"), "zero\none\n"),
        (("--attempt", "2"), "last words\n"),
        (("--all",), "pi-launcher-x zero\npi-worker-1   sshd\npi-launcher-x one\n"),
    ],
)
def test_logs_of_a_rank_a_worker_a_try_and_all(mpi: Any, api: FakeApi, options: tuple[str, ...], shown: str) -> None:
    failure = {"reason": "Error", "log": "last words"}
    tries = [attempt(1, "pi-launcher-x"), attempt(2, "gone")]
    api.stored["pi"] = stored(state="Running", annotations=TAGGED, attempts=tries, lastFailure=failure)
    api.all_pods = [pod("pi-launcher-x", role="launcher"), pod("pi-worker-1")]
    api.logs = {"pi-launcher-x": [b"1 [1,0]<stdout>:zero\n3 [1,1]<stdout>:one\n"], "pi-worker-1": [b"2 sshd\n"]}
    assert mpi("logs", "pi", *options)[1] == shown


def test_jobs_are_changed(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Running")
    assert mpi("scale", "pi", "3")[1] == "job pi: 3 workers\n"
    assert mpi("scale", "pi", "1", "--yes")[0] == 0
    assert "pass --yes" in mpi("scale", "pi", "1")[2]
    assert mpi("suspend", "pi", "--yes")[1].startswith("job pi suspended")
    api.stored["pi"]["spec"]["runPolicy"] = {"suspend": True}
    assert mpi("resume", "pi")[1] == "job pi resumed\n"
    assert mpi("restart", "pi", "--yes")[1] == "job pi created again\n"
    assert "status" not in api.stored["pi"]
    assert mpi("delete", "pi", "--yes")[1] == "job pi deleted\n"


def in_queue(state: str) -> dict[str, Any]:
    job = stored(state=state)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    job["spec"]["runPolicy"] = {"suspend": True}
    return job


def kueue(api: FakeApi, *queues: str) -> None:
    """Let the cluster have Kueue, with these queues in the namespace."""
    api.answers["/apis/kueue.x-k8s.io"] = {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2", "version": "v1beta2"}}
    items = [{"metadata": {"name": name}} for name in queues]
    api.answers["/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues"] = {"items": items}


@pytest.mark.parametrize(
    ("job", "command", "sentence"),
    [
        (stored(state="Running"), "scale pi 2", "it has 2 workers already"),
        (stored(state="Failed"), "scale pi 3", "it has ended (Failed); run it again with: kubectl mpi restart pi"),
        (stored(state="Failed"), "suspend pi", "it has ended (Failed); run it again with: kubectl mpi restart pi"),
        (stored(state="Succeeded"), "resume pi", "it has ended (Succeeded); run it again with: kubectl mpi restart pi"),
        (stored(state="Running"), "resume pi", "it is not suspended, it is Running"),
        (in_queue("Suspended"), "suspend pi", "it is Suspended already"),
        (in_queue("Queued"), "resume pi", "it waits in queue gpus, and Kueue starts it when there is room"),
    ],
)
def test_a_verb_that_changes_nothing_reports_it(mpi: Any, api: FakeApi, job: dict[str, Any], command: str, sentence: str) -> None:
    kueue(api, "gpus")
    api.stored["pi"] = job
    assert mpi(*command.split(), *(["--yes"] if "resume" not in command else [])) == (1, "", f"error: job pi is unchanged: {sentence}\n")
    assert not [request for request in api.requests if request[0] == "patch"]


def test_a_job_that_is_being_deleted_is_not_changed(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Running")
    api.stored["pi"]["metadata"]["deletionTimestamp"] = NOON
    assert mpi("suspend", "pi")[2] == "error: job pi is unchanged: it is being deleted\n"


def test_without_kueue_a_job_with_a_queue_can_be_resumed(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = in_queue("Queued")
    assert mpi("resume", "pi") == (0, "job pi resumed\n", "")


def test_a_queue_that_would_never_start_a_job_is_an_error(mpi: Any, api: FakeApi) -> None:
    def error() -> str:
        code, out, err = mpi(*RUN, "--detach", "--queue", "gpus", "--", "./a")
        assert (code, out, api.stored) == (1, "", {})
        return str(err)

    assert error().startswith("error: --queue gpus has no effect: the cluster does not have Kueue; ")
    kueue(api)
    assert error() == "error: --queue gpus: namespace team has no queue; ask an administrator for a LocalQueue\n"
    kueue(api, "cpus", "more")
    assert error() == "error: --queue gpus: namespace team has only the queues cpus, more\n"
    kueue(api, "gpus")
    assert mpi(*RUN, "--detach", "--queue", "gpus", "--", "./a")[0] == 0
    api.answers["/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues"] = ForbiddenError("no")
    assert mpi(*RUN[:-3], "two", "--detach", "--queue", "gpus", "--", "./a")[0] == 0


def test_only_old_jobs_that_have_ended_are_cleaned_up(mpi: Any, api: FakeApi) -> None:
    assert mpi("cleanup")[1] == "nothing to clean up\n"
    api.stored = {
        "running": stored("running", state="Running"),
        "new": stored("new", state="Succeeded", completionTime="2100-01-01T00:00:00Z"),
        "bad": stored("bad", state="Failed", completionTime="2026-01-01T00:00:00Z"),
        "old": stored("old", state="Succeeded", completionTime="2026-01-01T00:00:00Z"),
    }
    assert "pass --yes" in mpi("cleanup", "--older-than", "1d")[2]
    assert mpi("cleanup", "--older-than", "1d", "--succeeded", "--yes")[1].splitlines()[-1] == "1 job deleted"
    assert mpi("cleanup", "--older-than", "1d", "--yes")[1].splitlines()[-1] == "1 job deleted"
    assert sorted(api.stored) == ["new", "running"]


JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
spec:
  slotsPerWorker: -1
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: a
          - name: b
            imagePullPolcy: Never
"""


def test_submit_checks_all_before_it_creates_one(mpi: Any, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB + "---\n" + JOB.replace("name: pi", "name: two"))
    assert mpi("submit", str(file), "--dry-run", "server")[1] == "2 jobs are valid\n"
    assert mpi("submit", str(file), "--dry-run", "client")[1].count("kind: MPIJob") == 2
    assert api.stored == {}
    assert mpi("submit", str(file))[1] == "job pi created\njob two created\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(JOB))
    code, _, err = mpi("submit", "-")
    assert (code, "already exists; created before that: none" in err) == (1, True)


@pytest.mark.parametrize(
    ("step", "error", "line"),
    [
        ("create", "spec.slotsPerWorker: Invalid value: -1", 6),
        ("create", "spec.mpiReplicaSpecs.Worker.replicas: Required", 7),
        ("create", "something is wrong", 1),
        ("create", 'unknown field "spec.mpiReplicaSpecs.Launcher.template.spec.containers[1].imagePullPolcy"', 14),
        ("check", 'unknown field "spec.containers[1].imagePullPolcy"', 14),
    ],
)
def test_submit_names_file_and_line(mpi: Any, api: FakeApi, tmp_path: Path, step: str, error: str, line: int) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    api.answers[step] = InvalidError(error)
    code, _, err = mpi("submit", str(file))
    assert (code, err) == (2, f"error: {file}:{line}: {error}\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("{", "invalid YAML"),
        ("[" * 5000 + "]" * 5000, "job.yaml: its objects and lists are nested too deeply"),
        ("kind: Pod\n", ":1: not an MPIJob"),
        (JOB.replace("metadata:\n  name: pi\n", ""), "metadata with a name is missing"),
    ],
)
def test_submit_refuses_what_is_no_job(mpi: Any, tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    code, _, err = mpi("submit", str(file))
    assert (code, sentence in err) == (2, True), err


def usage(name: str, cpu: str, memory: str, **others: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "containers": [{"usage": {"cpu": cpu, "memory": memory, **others}}]}


def test_top_marks_stragglers(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Running")
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/team/pods"
    api.answers[path] = {"items": []}
    assert "no measurements of job pi yet" in mpi("top", "pi")[2]
    api.all_pods = [pod(f"pi-worker-{index}") for index in range(3)]
    api.answers[path] = {
        "items": [usage("pi-worker-0", "1500m", "64Mi"), usage("pi-worker-1", "2", "1Gi"), usage("pi-worker-2", "100000000n", "900Ki")]
    }
    rows = [line.split() for line in mpi("top", "pi")[1].splitlines()]
    assert rows[1:] == [
        ["pi-worker-0", "1.50", "64Mi"],
        ["pi-worker-1", "2.00", "1024Mi"],
        ["pi-worker-2", "0.10", "0Mi", "lags", "behind"],
    ]
    api.answers[path] = {"items": [usage("pi-worker-0", "1", "1Pi", gpu="2500m")]}
    assert [line.split() for line in mpi("top", "pi")[1].splitlines()] == [
        ["POD", "CPU", "MEMORY", "GPU"],
        ["pi-worker-0", "1.00", "1073741824Mi", "2.5"],
    ]


CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"
DEPLOYMENTS = "/apis/apps/v1/deployments"
LEASE = "/apis/coordination.k8s.io/v1/leases"
QUOTAS = "/api/v1/namespaces/team/resourcequotas"


def deployment(*, ready: int = 2, args: Sequence[str] = (), namespaces: str | None = None) -> dict[str, Any]:
    container = {"args": list(args), "env": [] if namespaces is None else [{"name": "KUBEFLOW_NAMESPACE", "value": namespaces}]}
    return {
        "metadata": {"name": "op", "namespace": "mpi-operator"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        "status": {"readyReplicas": ready},
    }


def lease(**spec: Any) -> dict[str, Any]:
    return {"items": [{"metadata": {"namespace": "mpi-operator"}, "spec": spec}]}


def quota(*, used: str) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": "few"}, "status": {"hard": {"pods": "4"}, "used": {"pods": used}}}]}


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """The API server of a healthy cluster."""
    versions = [{"name": "v2beta1", "served": True, "additionalPrinterColumns": [{"name": "State"}]}]
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": "4"}}
    api.answers |= {
        CRD: {"spec": {"versions": versions}},
        LEASE: lease(holderIdentity="a", renewTime=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"),
        DEPLOYMENTS: {"items": [deployment()]},
        QUOTAS: quota(used="1"),
        "/apis": {"groups": [{"name": "scheduling.volcano.sh"}]},
        "/api/v1/namespaces/team/events": {"items": [{"message": "Error: ErrImagePull"}]},
        "/api/v1/nodes": {"items": [{"status": ready}]},
    }
    return api


def test_a_job_that_no_operator_sees_is_reported_by_each_verb(mpi: Any, cluster: FakeApi, tmp_path: Path) -> None:
    unseen = "no operator has seen it: none runs, or none watches namespace team; check with: kubectl mpi doctor -n team\n"
    cluster.stored["pi"] = stored()
    assert mpi("list")[2] == f"warning: job pi: {unseen}"
    assert "None watches" not in mpi("why", "pi")[1]
    assert unseen[1:].strip() in mpi("why", "pi")[1].replace("\n", " ")
    code, out, _ = mpi("doctor")
    assert (code, "no operator has seen these jobs of namespace team: pi" in out) == (1, True)
    file = tmp_path / "job.yaml"
    file.write_text(to_yaml({**stored("new"), "status": None}))
    assert mpi("submit", str(file)) == (0, "job new created\n", f"warning: job new: {unseen}")


def test_a_job_that_is_seen_or_managed_by_another_raises_no_such_alarm(mpi: Any, cluster: FakeApi) -> None:
    multikueue = stored("remote")
    multikueue["spec"]["runPolicy"] = {"managedBy": "kueue.x-k8s.io/multikueue"}
    new = stored("new")
    new["metadata"]["creationTimestamp"] = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"  # no test may be too slow for it
    cluster.stored = {job["metadata"]["name"]: job for job in (multikueue, new, stored("seen", state="Running"))}
    assert mpi("list")[2] == ""
    assert "Another manager runs it: kueue.x-k8s.io/multikueue." in mpi("why", "remote")[1]
    code, out, _ = mpi("doctor")
    assert (code, "an operator has seen the jobs of namespace team" in out) == (0, True)


@pytest.mark.parametrize("state", ["", "Running", "Succeeded"])
def test_a_job_that_is_being_deleted_is_terminating(mpi: Any, api: FakeApi, state: str) -> None:
    api.stored["pi"] = stored(state=state)
    api.stored["pi"]["metadata"]["deletionTimestamp"] = "2026-11-25T12:01:00Z"
    assert mpi("list")[1].splitlines()[1].split()[:2] == ["pi", "Terminating"]
    assert mpi("why", "pi")[1] == "Job pi is being deleted.\n"


def test_failed_attempts_are_no_restarts(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(summary={"state": "Running", "workers": "2/2", "restarts": "1", "attempts": "3"})
    header, row = (line.split() for line in mpi("list", "-o", "wide")[1].splitlines())
    assert (row[header.index("RESTARTS")], row[-2]) == ("1", "3")


def test_doctor_finds_all_well(mpi: Any, cluster: FakeApi) -> None:
    kueue(cluster, "gpus")
    code, out, _ = mpi("doctor")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == {"ok"}
    assert "queues of Kueue: gpus" in out
    assert "nvidia.com/gpu" in out
    assert "PodGroups of gang schedulers: Volcano" in out


@pytest.mark.parametrize(
    ("path", "answer", "line"),
    [
        (DEPLOYMENTS, {"items": [deployment(ready=0)]}, "problem  Deployment op in namespace mpi-operator: 0 of 2 replicas"),
        (DEPLOYMENTS, {"items": [deployment(ready=1)]}, "unknown  Deployment op in namespace mpi-operator: 1 of 2 replicas"),
        (DEPLOYMENTS, ForbiddenError("no"), "unknown  you may not look: no"),
        (LEASE, {"items": []}, "problem  no operator has ever led here"),
        *(
            (
                LEASE,
                lease(holderIdentity="a", renewTime=f"{year}-01-01T00:00:00Z"),
                "problem  no operator leads in namespace mpi-operator: its Lease",
            )
            for year in (2026, 2100)
        ),
        (LEASE, ForbiddenError("no"), "unknown  you may not look: no"),
        (
            LEASE,
            {"message": "It works!"},
            "problem  leader: the server does not answer as an API server does\n         Check server in the kubeconfig.",
        ),
        ("create", InvalidError("a webhook refuses it"), "problem  a webhook refuses it"),
    ],
)
def test_doctor_reports_what_is_down(mpi: Any, cluster: FakeApi, path: str, answer: Any, line: str) -> None:
    cluster.answers[path] = answer
    code, out, _ = mpi("doctor")
    assert line in out
    assert code == int(line.startswith("problem"))


@pytest.mark.parametrize(
    ("deployments", "only"),
    [
        pytest.param([deployment()], "", id="all namespaces"),
        pytest.param([deployment(args=["--namespace=other, team"])], "", id="a list with ours"),
        pytest.param([deployment(args=["--namespace=other"]), deployment(args=["-namespace", "team"])], "", id="one of two"),
        pytest.param([deployment(args=["--namespace=other", "--namespace="])], "", id="the last flag wins"),
        pytest.param([deployment(args=["--namespace=b,a"]), deployment(namespaces="c")], "a, b, c", id="none of two"),
        pytest.param([deployment(args=["--namespace", "a"], namespaces="team")], "a", id="the flag wins over the variable"),
    ],
)
def test_doctor_reports_that_no_operator_serves_the_namespace(mpi: Any, cluster: FakeApi, deployments: list[Any], only: str) -> None:
    cluster.answers[DEPLOYMENTS] = {"items": deployments}
    code, out, _ = mpi("doctor")
    assert (code, "no operator serves namespace team" in out) == (int(bool(only)), bool(only))
    assert not only or f"problem  no operator serves namespace team, only {only}\n" in out


def test_doctor_believes_a_lease_that_is_renewed_rather_than_clocks(mpi: Any, cluster: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.answers[LEASE] = lease(holderIdentity="a", renewTime="2100-01-01T00:00:00Z")

    def renew(_seconds: float) -> None:
        cluster.answers[LEASE] = lease(holderIdentity="a", renewTime="2100-01-01T00:00:03Z")

    monkeypatch.setattr("time.sleep", renew)
    code, out, _ = mpi("doctor")
    assert (code, "leads: a, renewed while doctor watched" in out) == (0, True)


def test_doctor_reports_that_jobs_cannot_be_listed(mpi: Any, cluster: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise UnreachableError("jobs of namespace team: no answer")

    monkeypatch.setattr(cluster, "jobs", away)
    code, out, _ = mpi("doctor")
    assert (code, "problem  jobs of namespace team: no answer" in out) == (1, True)


@pytest.mark.parametrize(
    ("state", "log", "code", "line"),
    [
        ("Succeeded", b"1 a\n1 b\n", 0, "ok       a job of image i ran on two workers, and was deleted"),
        ("Succeeded", b"1 a\n1 a\n", 1, "but its 2 ranks printed 1 host names: a, a"),
        ("Failed", b"", 1, "failed: MPIJobFailed"),
        ("", b"", 1, "has not ended within 0 s: Job doctor-"),
    ],
)
def test_doctor_runs_a_job_and_deletes_it(
    mpi: Any, cluster: FakeApi, monkeypatch: pytest.MonkeyPatch, state: str, log: bytes, code: int, line: str
) -> None:
    monkeypatch.setattr("mpiop.kubectl.smoke.SMOKE_SECONDS", 0.0)
    done(cluster, "doctor", state)
    cluster.logs = {"doctor-launcher-x": [log]}
    found, out, _ = mpi("doctor", "--run", "--image", "i")
    assert (found, line in out) == (code, True), out
    assert cluster.stored == {}


def test_doctor_says_what_to_do(mpi: Any, cluster: FakeApi) -> None:
    cluster.answers |= {LEASE: lease(holderIdentity=""), QUOTAS: quota(used="4")}
    cluster.answers["/api/v1/nodes"] = ForbiddenError("nodes is forbidden")
    cluster.answers["/apis"] = {"groups": []}
    cluster.answers["/api/v1/namespaces/team/events"] = {"items": [{"message": 'Failed to pull image "x:1": not found'}] * 2}
    cluster.forbidden = {"create mpijobs"}
    code, out, _ = mpi("doctor")
    assert code == 1
    for sentence in (
        "no operator leads in namespace mpi-operator",
        "you may not create mpijobs",
        "quota few is used up: pods",
        "you may not look: nodes is forbidden",
        "images could not be pulled: x:1\n",
        "no gang scheduler",
    ):
        assert sentence in out


@pytest.mark.parametrize(
    ("crd", "sentence"),
    [
        (None, "the cluster does not know MPIJobs"),
        ({"spec": {"versions": [{"name": "v1", "served": True}]}}, "serves MPIJobs as v1 only"),
        ({"spec": {"versions": [{"name": "v2beta1", "served": True}]}}, "that of another operator"),
        (ForbiddenError("no"), "ok       the cluster knows MPIJobs"),
        (UnreachableError("no answer"), "problem  no answer"),
    ],
)
def test_doctor_knows_whose_definition_it_is(mpi: Any, cluster: FakeApi, crd: Any, sentence: str) -> None:
    cluster.answers[CRD] = crd
    if crd is None:
        del cluster.answers[CRD]
    assert sentence in mpi("doctor")[1]
    cluster.answers[LEASE] = {"items": []}
    assert "no operator has ever led here" in mpi("doctor")[1]


def test_other_errors_of_the_cluster_have_a_code_of_their_own(mpi: Any, api: FakeApi) -> None:
    for error, code in ((ForbiddenError("no"), 4), (ConflictError("no"), 1), (ClientError("no"), 1)):
        api.answers["create"] = error
        assert mpi(*RUN, "--", "./a")[::2] == (code, "error: no\n")


IN_NO_CLUSTER = [
    (*RUN, "--", "./a"),
    ("list",),
    ("describe", "pi"),
    ("why", "pi"),
    ("logs", "pi"),
    ("top", "pi"),
    ("timeline", "pi"),
    ("shell", "pi"),
    ("exec", "pi", "--", "hostname"),
    ("cp", "pi:/a", "b"),
    ("scale", "pi", "3"),
    ("suspend", "pi"),
    ("resume", "pi"),
    ("restart", "pi"),
    ("delete", "--yes", "pi"),
    ("cleanup", "--yes"),
]


@pytest.mark.parametrize("arguments", IN_NO_CLUSTER, ids=lambda arguments: arguments[0])
def test_a_kubeconfig_that_cannot_be_used_is_one_sentence(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("{current-context: c, contexts: [{name: c, context: {cluster: k}}], clusters: [{name: x}]}")
    monkeypatch.setenv("KUBECONFIG", str(path))
    code = run(list(arguments))
    assert (code, *capsys.readouterr()) == (
        1,
        "",
        f"error: kubeconfig {path}, context 'c': there is no cluster 'k'; the clusters are: 'x'\n",
    )


def test_doctor_reports_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], clusters: [{name: k, cluster: {server: https://k}}], "
        "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: none-such, interactiveMode: Never}}}]}"
    )
    assert run(["doctor", "--kubeconfig", str(path)]) == 1
    sentence = "credential plug-in none-such is not installed, or not executable; install it"
    assert capsys.readouterr().out == f"problem  kubeconfig {path}, context 'c' (cluster 'k', user 'u'): {sentence}\n"


def test_doctor_stops_where_nobody_knows_the_user(mpi: Any, cluster: FakeApi) -> None:
    cluster.answers[LEASE] = UnauthenticatedError("who are you?")
    code, out, _ = mpi("doctor")
    assert (code, out.splitlines()[-1]) == (1, "problem  who are you?")
