"""The launcher Job: a row for each rule; the whole of one is compared by test/conformance, our files in test_ssh_script."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from example_children import build_worker_pod
from example_jobs import PI, container, template, with_launcher
from mpiop.api.types import MPIJob, ReplicaSpec, RunPolicy
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_job, build_launcher_template
from mpiop.controller.restart.policy import launcher_limits


def pod_of(job: MPIJob, options: BuildOptions = BuildOptions()) -> dict[str, Any]:  # noqa: B008 - frozen
    return build_launcher_template(job, options)


def environment(job: MPIJob) -> list[tuple[str, Any]]:
    return [(variable["name"], variable.get("value")) for variable in pod_of(job)["spec"]["containers"][0]["env"]]


@pytest.mark.parametrize(("ttl", "passed_on"), [(None, None), (0, 600), (599, 600), (601, 601)])
def test_limits_are_passed_on_but_a_time_to_live_that_could_end_before_the_end_is_recorded(ttl: int | None, passed_on: int | None) -> None:
    policy = RunPolicy(ttl_seconds_after_finished=ttl, active_deadline_seconds=0, backoff_limit=3)
    job = replace(PI, run_policy=policy)
    spec = build_launcher_job(job, BuildOptions(), limits=launcher_limits(job), suspend=False)["spec"]
    limits = {name: spec.get(name) for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")}
    assert limits == {"ttlSecondsAfterFinished": passed_on, "activeDeadlineSeconds": 0, "backoffLimit": 3}


def test_shared_memory_is_a_volume_in_memory() -> None:
    job = replace(PI, shm="8Gi")
    for spec in (pod_of(job)["spec"], build_worker_pod(job, 0, BuildOptions())["spec"]):
        assert {"name": "mpiop-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in spec["volumes"]
        assert {"name": "mpiop-shm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]  # noqa: S108


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_the_replica_specs_restart_policy_overrides_the_templates(policy: str) -> None:
    role = ReplicaSpec(1, template(restartPolicy="Always"), policy)
    job = replace(PI, launcher=role, worker=role)
    for pod in (pod_of(job), build_worker_pod(job, 0, BuildOptions())):
        assert pod["spec"]["restartPolicy"] == policy


def test_dns_policy_follows_the_host_network_and_searches_stay() -> None:
    spec = pod_of(with_launcher(PI, template(hostNetwork=True, dnsConfig={"searches": ["corp.example.com"]})))["spec"]
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["dnsConfig"] == {"searches": ["corp.example.com"]}


def test_a_launcher_that_works_keeps_its_gpus_and_is_replica_0() -> None:
    job = replace(PI, run_launcher_as_worker=True)
    assert not [name for name, _ in environment(job) if name.startswith("NVIDIA_")]
    assert pod_of(job)["metadata"]["labels"]["training.kubeflow.org/replica-index"] == "0"


def test_variables_of_the_user_win_except_for_the_gpus() -> None:
    given = [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
        {"name": "OMPI_MCA_plm_rsh_args", "value": "-p 2222"},
        {"name": "A", "value": "1"},
    ]
    found = environment(with_launcher(PI, template(container(env=given))))
    assert found[:3] == [("OMPI_MCA_plm_rsh_args", "-p 2222"), ("A", "1"), ("K_MPI_JOB_ROLE", "launcher")]
    assert found[-2:] == [("NVIDIA_VISIBLE_DEVICES", ""), ("NVIDIA_DRIVER_CAPABILITIES", "")]
    assert len({name for name, _ in found}) == len(found)


def test_what_the_user_mounts_at_etc_mpi_stays() -> None:
    mounts = [{"name": "mine", "mountPath": "/etc/mpi"}]
    found = pod_of(with_launcher(PI, template(container(volumeMounts=mounts))))["spec"]["containers"][0]["volumeMounts"]
    assert [mount for mount in found if mount["mountPath"] == "/etc/mpi"] == mounts


OURS = "/etc/mpi-hosts/ssh:ssh"
CONFIG_MAPS = {"settings": {"OMPI_MCA_plm_rsh_agent": "/opt/agent/myssh"}, "agent": {"agent": "/opt/agent/myssh"}, "other": {"A": "1"}}


def environment_of_container(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the kubelet gives to the container: `env` in its order after `envFrom`; what is optional may be missing.

    Source: kubernetes pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables.
    """
    variables: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        [reference] = [source[kind] for kind in ("configMapRef", "secretRef") if kind in source]
        variables |= {source.get("prefix", "") + key: value for key, value in CONFIG_MAPS.get(reference["name"], {}).items()}
    for variable in container["env"]:
        if "value" in variable:
            variables[variable["name"]] = variable["value"]
            continue
        [reference] = variable["valueFrom"].values()
        assert reference["optional"]
        if (value := CONFIG_MAPS.get(reference["name"], {}).get(reference["key"])) is not None:
            variables[variable["name"]] = value
    return variables


@pytest.mark.parametrize(
    ("agent", "sources"),
    [
        pytest.param(OURS, [], id="no source"),
        pytest.param(OURS, [{"configMapRef": {"name": "other"}}], id="a source without the variable"),
        pytest.param(OURS, [{"configMapRef": {"name": "missing", "optional": True}}], id="a source that does not exist"),
        pytest.param("/opt/agent/myssh", [{"configMapRef": {"name": "settings"}}], id="a ConfigMap"),
        pytest.param("/opt/agent/myssh", [{"secretRef": {"name": "settings"}}], id="a Secret"),
        pytest.param("/opt/agent/myssh", [{"configMapRef": {"name": "settings"}}, {"configMapRef": {"name": "other"}}], id="one of two"),
        pytest.param("/opt/agent/myssh", [{"prefix": "OMPI_MCA_plm_rsh_", "configMapRef": {"name": "agent"}}], id="a prefix"),
        pytest.param(OURS, [{"prefix": "X_", "configMapRef": {"name": "settings"}}], id="another prefix"),
        pytest.param(OURS, [{"prefix": "OMPI_MCA_plm_rsh_agent", "configMapRef": {"name": "agent"}}], id="a prefix that is the variable"),
    ],
)
def test_what_the_user_sets_by_envFrom_comes_before_what_the_reference_operator_does_not_set(agent: str, sources: list[Any]) -> None:
    pod = pod_of(with_launcher(PI, template(container(envFrom=sources))))
    variables = environment_of_container(pod["spec"]["containers"][0])
    assert variables["OMPI_MCA_plm_rsh_agent"] == agent
    assert variables["PRTE_MCA_plm_ssh_agent"] == OURS


def test_variables_of_the_reference_operator_come_before_envFrom_as_they_did() -> None:
    sources = [{"configMapRef": {"name": "settings"}}]
    pod = pod_of(with_launcher(PI, template(container(envFrom=sources))))
    repeated = {variable["name"] for variable in pod["spec"]["containers"][0]["env"] if "valueFrom" in variable}
    assert repeated == {
        "OMPI_MCA_plm_rsh_agent",
        "PRTE_MCA_odls_base_max_threads",
        "PRTE_MCA_plm_ssh_agent",
        "PRTE_MCA_plm_ssh_args",
        "PRTE_MCA_prte_default_hostfile",
        "PRTE_MCA_prte_keep_fqdn_hostnames",
        "PRTE_MCA_prte_set_default_slots",
    }


def test_a_variable_that_the_user_sets_in_env_is_left_to_them_alone() -> None:
    given = [{"name": "OMPI_MCA_plm_rsh_agent", "value": "rsh"}]
    pod = pod_of(with_launcher(PI, template(container(env=given, envFrom=[{"configMapRef": {"name": "settings"}}]))))
    env = pod["spec"]["containers"][0]["env"]
    assert [variable for variable in env if variable["name"] == "OMPI_MCA_plm_rsh_agent"] == given
