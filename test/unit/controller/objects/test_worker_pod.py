"""Worker pods: a row for each rule; the whole of one is compared by test/conformance, our files in test_ssh_script."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from example_children import build_worker_pod
from example_jobs import PI, container, template, with_launcher, with_worker
from mpiop.api import constants as c
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_template
from mpiop.controller.objects.worker_pod import worker_builder
from mpiop.kube.objects import Object


def worker_of(text: dict[str, Any], options: BuildOptions = BuildOptions()) -> Object:  # noqa: B008 - frozen
    return build_worker_pod(with_worker(PI, text), 0, options)


def first(pod: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def test_the_users_template_stays_as_it_was_and_no_part_of_it_is_shared() -> None:
    text = template(
        container(
            env=[{"name": "A", "value": "1"}], volumeMounts=[{"name": "data", "mountPath": "/data"}], securityContext={"runAsUser": 1}
        ),
        metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}},
        volumes=[{"name": "data", "emptyDir": {}}],
        dnsConfig={"searches": ["example.com"]},
        initContainers=[{"name": "mine", "image": "example.com/mine"}],
    )
    before = deepcopy(text)
    for pod in (worker_of(text), build_launcher_template(with_launcher(PI, text), BuildOptions())):
        pod["metadata"]["labels"]["a"] = pod["metadata"]["annotations"]["c"] = "changed"
        pod["spec"]["initContainers"][0]["name"] = first(pod)["securityContext"]["runAsUser"] = "changed"
        for part in (first(pod)["env"], first(pod)["volumeMounts"], pod["spec"]["volumes"], pod["spec"]["dnsConfig"]["searches"]):
            part[0] = "changed"
        assert text == before


@pytest.mark.parametrize("path", ["/dev/shm", "dev/shm/", "/dev", "/dev/shm/cache"])  # noqa: S108
def test_shared_memory_of_the_template_wins(path: str) -> None:
    text = template(container(volumeMounts=[{"name": "own", "mountPath": path}]))
    pod = build_worker_pod(replace(with_worker(PI, text), shm="8Gi"), 0, BuildOptions())
    assert "mpiop-shm" not in [volume["name"] for volume in pod["spec"]["volumes"]]
    assert [mount["name"] for mount in first(pod)["volumeMounts"]].count("own") == 1


def test_a_field_that_we_do_not_know_is_kept() -> None:
    pod = worker_of(template(container(novelty={"a": [1]}), futureField=[{"b": None}]))
    assert first(pod)["novelty"] == {"a": [1]}
    assert pod["spec"]["futureField"] == [{"b": None}]


def test_labels_and_annotations_of_the_template_are_kept_and_ours_win() -> None:
    metadata = {
        "name": "not-ours",
        "labels": {"team": "blue", "training.kubeflow.org/job-role": "launcher"},
        "annotations": {"sidecar.istio.io/inject": "false"},
    }
    pod = worker_of(template(metadata=metadata))
    assert pod["metadata"]["name"] == "pi-worker-0"
    assert pod["metadata"]["labels"]["team"] == "blue"
    assert pod["metadata"]["labels"]["training.kubeflow.org/job-role"] == "worker"
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert "app" not in pod["metadata"]["labels"]


@pytest.mark.parametrize(
    ("spec", "policy"),
    [({}, None), ({"hostNetwork": True}, "ClusterFirstWithHostNet"), ({"dnsPolicy": "Default"}, "Default")],
)
def test_dns_policy(spec: dict[str, Any], policy: str | None) -> None:
    assert worker_of(template(**spec))["spec"].get("dnsPolicy") == policy


@pytest.mark.parametrize(
    ("config", "options", "desired"),
    [
        (None, BuildOptions(), {"searches": ["pi.default.svc.cluster.local"]}),
        (None, BuildOptions(cluster_domain="example.com"), {"searches": ["pi.default.svc.example.com"]}),
        (
            {"searches": ["corp.example.com"], "options": [{"name": "ndots", "value": "2"}]},
            BuildOptions(),
            {"searches": ["corp.example.com", "pi.default.svc.cluster.local"], "options": [{"name": "ndots", "value": "2"}]},
        ),
    ],
)
def test_siblings_are_found_by_their_short_names(config: object, options: BuildOptions, desired: object) -> None:
    assert worker_of(template(dnsConfig=config), options)["spec"]["dnsConfig"] == desired


@pytest.mark.parametrize(
    ("fields", "command", "args"),
    [
        ({}, ["/usr/sbin/sshd", "-De"], None),
        ({"command": [], "args": None}, ["/usr/sbin/sshd", "-De"], None),
        ({"command": ["/start"]}, ["/start"], None),
        ({"args": ["-f", "/sshd_config"]}, None, ["-f", "/sshd_config"]),
    ],
)
def test_sshd_runs_where_nothing_was_said(fields: dict[str, Any], command: object, args: object) -> None:
    found = first(worker_of(template(container(**fields))))
    assert (found.get("command"), found.get("args")) == (command, args)


def test_a_variable_that_the_user_set_is_left_alone() -> None:
    given = [{"name": "K_MPI_JOB_ROLE", "value": "mine"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    assert first(worker_of(template(container(env=given))))["env"] == given


def test_only_the_first_container_is_set_up() -> None:
    sidecar = {"name": "sidecar", "image": "example.com/logs"}
    assert worker_of(template(container(), sidecar))["spec"]["containers"][1] == sidecar


@pytest.mark.parametrize(
    ("path", "mode"),
    [("/root/.ssh", 0o600), ("/root/.ssh/", 0o600), ("/home/mpiuser/.ssh", None)],
)
def test_only_roots_keys_are_for_their_owner_alone(path: str, mode: int | None) -> None:
    pod = build_worker_pod(replace(PI, ssh_auth_mount_path=path), 0, BuildOptions())
    assert pod["spec"]["volumes"][0]["secret"].get("defaultMode") == mode
    assert first(pod)["volumeMounts"][0] == {"name": "ssh-auth", "mountPath": path}


def test_what_the_user_mounts_over_the_keys_stays() -> None:
    mounts = [{"name": "my-keys", "mountPath": "/root/.ssh/"}, {"name": "data", "mountPath": "data"}]
    assert first(worker_of(template(container(volumeMounts=mounts))))["volumeMounts"][:-1] == mounts


def test_a_volume_of_the_users_with_the_name_of_ours_is_mounted_in_its_place() -> None:
    volume = {"name": "ssh-auth", "secret": {"secretName": "my-keys"}}
    pod = worker_of(template(volumes=[volume]))
    assert [found for found in pod["spec"]["volumes"] if found["name"] == "ssh-auth"] == [volume]
    assert {"name": "ssh-auth", "mountPath": "/root/.ssh"} in first(pod)["volumeMounts"]


@pytest.mark.parametrize(
    ("gang", "scheduler", "annotation", "label"),
    [
        ("", "mine", None, None),
        ("kubernetes", "mine", None, None),
        ("volcano", "volcano", "pi", None),
        ("scheduler-plugins", "scheduler-plugins", None, "pi"),
    ],
)
def test_gang_scheduling(gang: str, scheduler: str, annotation: str | None, label: str | None) -> None:
    pod = worker_of(template(schedulerName="mine"), BuildOptions(gang_scheduler=gang))
    assert pod["spec"]["schedulerName"] == scheduler
    assert pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name") == annotation
    assert pod["metadata"]["labels"].get("scheduling.x-k8s.io/pod-group") == label


def test_what_workers_share_is_all_but_their_names_and_places() -> None:
    build = worker_builder(PI, BuildOptions())

    pods = [build(index) for index in (0, 7)]

    assert pods == [build_worker_pod(PI, index, BuildOptions()) for index in (0, 7)]
    assert [(pod["metadata"]["name"], pod["spec"]["hostname"]) for pod in pods] == [("pi-worker-0",) * 2, ("pi-worker-7",) * 2]
    assert [pod["metadata"]["labels"][c.LABEL_REPLICA_INDEX] for pod in pods] == ["0", "7"]


def test_a_job_without_workers_has_none_to_build() -> None:
    with pytest.raises(ValueError, match="cannot build workers of default/pi: the job has no Worker replica spec"):
        build_worker_pod(replace(PI, worker=None), 0, BuildOptions())
