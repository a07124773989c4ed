"""The example's job, from `kubectl apply` to π: every object, label, variable, event, status field and metric that users rely on."""

import re
from dataclasses import dataclass

import pytest

from e2e.jobs import (
    LAUNCHER,
    RUNS,
    condition,
    held,
    is_true,
    launcher_pod,
    let_run,
    pi_job,
    restarts,
    until_true,
)
from e2e.kubectl import CHILDREN, Kubectl, Obj
from e2e.operator_pods import Operator
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES

COUNTERS = ("mpi_operator_jobs_created_total", "mpi_operator_jobs_successful_total", "mpi_operator_jobs_failed_total")


@dataclass(frozen=True)
class Run:
    """One run of the job `pi`: what was there while its launcher ran, and what at its end."""

    here: Kubectl
    launcher: str
    running: Obj
    pods_while_running: list[Obj]
    hosts_while_running: Obj
    finished: Obj
    counted: dict[str, float]

    @property
    def namespace(self) -> str:
        return self.here.namespace

    @property
    def workers(self) -> int:
        """How many workers the example has."""
        desired: int = self.finished["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
        return desired

    def pods(self, role: str) -> list[Obj]:
        """Return the Pods of `role` while the launcher ran."""
        return [pod for pod in self.pods_while_running if pod["metadata"]["labels"]["training.kubeflow.org/job-role"] == role]

    @property
    def hosts(self) -> list[str]:
        """The workers' names in DNS."""
        return [f"pi-worker-{index}.pi.{self.namespace}.svc" for index in range(self.workers)]


@pytest.fixture(scope="module")
def run(module_namespace: Kubectl, operator: Operator) -> Run:
    """Run the example's job alone, for the counters count all jobs, its launcher held until the running state was looked at."""
    here = module_namespace
    here.within("").until(
        MPIJOBS, lambda jobs: not any(job["metadata"]["namespace"].startswith("e2e-") for job in jobs), timeout_seconds=120
    )
    before = operator.metrics(operator.until_led())
    here.apply(held(pi_job()))
    running = until_true(here, "pi", "Running")
    launcher = launcher_pod(here)
    pods = here.read_all(PODS)
    workers = running["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    hosts = here.until_one(CONFIG_MAPS, "pi-config", lambda found: found["data"]["discover_hosts.sh"].count("echo") == workers)
    let_run(here, launcher)
    finished = until_true(here, "pi", "Succeeded")
    after = operator.until_metrics(lambda metrics: metrics[COUNTERS[1]] > before.get(COUNTERS[1], 0))
    counted = {name: after[name] - before.get(name, 0) for name in COUNTERS}
    return Run(here, launcher, running, pods, hosts, finished, counted)


@pytest.mark.parametrize("attempt", range(1, RUNS + 1))
def test_the_example_computes_pi_on_every_worker_at_the_first_try(attempt: int, namespace: Kubectl) -> None:
    name = f"pi-{attempt}"
    namespace.apply(pi_job(name))
    job = until_true(namespace, name, "Succeeded")
    [launcher] = namespace.read_all(PODS, LAUNCHER)
    log = namespace.run("logs", launcher["metadata"]["name"])
    assert re.search(r"\b3\.14\d+", log), log
    for index in range(job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]):
        assert f"{name}-worker-{index}" in log, log
    assert restarts(launcher) == 0
    assert namespace.read(JOBS, f"{name}-launcher")["status"].get("failed", 0) == 0


def test_conditions_show_the_whole_run(run: Run) -> None:
    rows = [row for row in run.finished["status"]["conditions"] if row["type"] != "Stalled"]
    reported = [(row["type"], row["status"], row["reason"], row["message"]) for row in rows]
    job = f"MPIJob {run.namespace}/pi"
    assert reported == [
        ("Created", "True", "MPIJobCreated", f"{job} is created."),
        ("Running", "False", "MPIJobRunning", f"{job} is running."),
        ("Finished", "True", "Succeeded", f"{job} successfully completed."),
        ("Succeeded", "True", "MPIJobSucceeded", f"{job} successfully completed."),
    ]
    assert not is_true(run.finished, "Stalled")


def test_the_times_of_running_stay_when_it_ends(run: Run) -> None:
    before, after = condition(run.running, "Running"), condition(run.finished, "Running")
    assert before | {"status": "False"} == after


def test_replicas_are_counted_while_it_runs_and_at_the_end(run: Run) -> None:
    assert run.finished["status"]["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
    assert run.running["status"]["replicaStatuses"] == {"Launcher": {"active": 1}, "Worker": {"active": run.workers}}


def test_start_and_end_have_their_times(run: Run) -> None:
    job = run.here.read(JOBS, "pi-launcher")
    status = run.finished["status"]
    assert status["startTime"] == run.running["status"]["startTime"]
    assert status["completionTime"] == job["status"]["completionTime"]
    assert "completionTime" not in run.running["status"]
    assert "lastReconcileTime" not in status


def test_the_stored_spec_is_what_the_user_wrote(run: Run) -> None:
    desired = held(pi_job())["spec"]["mpiReplicaSpecs"]
    stored = run.finished["spec"]["mpiReplicaSpecs"]
    assert {role: set(spec) for role, spec in desired.items()} == {role: set(spec) for role, spec in stored.items()}
    assert {"sshAuthMountPath", "slotsPerWorker", "mpiImplementation", "launcherCreationPolicy"} <= set(run.finished["spec"])


def test_each_event_comes_once(run: Run) -> None:
    events = [e for e in run.here.read_all(EVENTS) if e["involvedObject"]["kind"] == "MPIJob"]
    reported = sorted((e["type"], e["reason"], e["message"], e.get("count", 1)) for e in events)
    job = f"MPIJob {run.namespace}/pi"
    assert reported == [
        ("Normal", "MPIJobCreated", f"{job} is created.", 1),
        ("Normal", "MPIJobRunning", f"{job} is running", 1),
        ("Normal", "MPIJobSucceeded", f"{job} successfully completed.", 1),
    ]
    assert {e["source"]["component"] for e in events} == {e["reportingComponent"] for e in events} == {"mpi-job-controller"}
    assert {e["involvedObject"]["uid"] for e in events} == {run.finished["metadata"]["uid"]}


def test_every_object_belongs_to_the_job(run: Run) -> None:
    made = {(SERVICES, "pi"), (CONFIG_MAPS, "pi-config"), (SECRETS, "pi-ssh"), (JOBS, "pi-launcher")}
    objects = [run.here.read(resource, name) for resource, name in sorted(made, key=str)]
    assert {each["metadata"]["labels"]["app"] for each in objects} == {"pi"}
    for each in [*objects, *run.pods("worker")]:
        assert each["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": "pi",
                "uid": run.finished["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_pods_carry_the_labels_that_others_select_by(run: Run, role: str) -> None:
    desired = {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/job-role": role,
        "mpi_job_name": "pi",
        "mpi_role_type": role,
    }
    pods = run.pods(role)
    assert len(pods) == (1 if role == "launcher" else run.workers)
    for pod in pods:
        assert desired.items() <= pod["metadata"]["labels"].items()
        assert role == "launcher" or "app" not in pod["metadata"]["labels"]


def test_workers_are_numbered_named_and_reachable_by_ssh(run: Run) -> None:
    assert len(run.pods("worker")) == run.workers
    for index, pod in enumerate(run.pods("worker")):
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        assert pod["metadata"]["name"] == spec["hostname"] == f"pi-worker-{index}"
        assert pod["metadata"]["labels"]["training.kubeflow.org/replica-index"] == str(index)
        assert spec["subdomain"] == "pi"
        assert spec["restartPolicy"] == "Never"
        assert {"name": "K_MPI_JOB_ROLE", "value": "worker"} in container["env"]
        assert mount_path(container, "ssh-auth") == run.finished["spec"]["sshAuthMountPath"]
        assert f"pi.{run.namespace}.svc.cluster.local" in spec["dnsConfig"]["searches"]


def test_the_launcher_knows_hosts_and_slots_whatever_the_open_mpi(run: Run) -> None:
    [pod] = run.pods("launcher")
    container = pod["spec"]["containers"][0]
    values = {each["name"]: each.get("value", "") for each in container["env"]}
    desired = {
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(run.finished["spec"]["slotsPerWorker"]),
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "PRTE_MCA_odls_base_max_threads": "0",
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": str(run.finished["spec"]["slotsPerWorker"]),
        "PRTE_MCA_plm_ssh_args": "-F /etc/mpi-hosts/ssh_config",
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }
    assert {name: values.get(name) for name in desired} == desired
    assert mount_path(container, "mpi-job-config") == "/etc/mpi"
    assert mount_path(container, "mpi-hosts") == "/etc/mpi-hosts"
    assert mount_path(container, "ssh-auth") == run.finished["spec"]["sshAuthMountPath"]
    assert pod["spec"]["hostname"] == "pi-launcher"
    assert pod["spec"]["subdomain"] == "pi"


def mount_path(container: Obj, volume: str) -> str:
    return next(str(mount["mountPath"]) for mount in container["volumeMounts"] if mount["name"] == volume)


def test_service_config_map_and_secret_are_as_described(run: Run) -> None:
    service, secret = run.here.read(SERVICES, "pi"), run.here.read(SECRETS, "pi-ssh")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }
    assert not service["spec"].get("publishNotReadyAddresses")
    slots = run.finished["spec"]["slotsPerWorker"]
    data = run.hosts_while_running["data"]
    assert data["hostfile"] == "".join(f"{host} slots={slots}\n" for host in run.hosts)
    assert data["discover_hosts.sh"] == "#!/bin/sh\n" + "".join(f"echo {host}\n" for host in run.hosts)
    assert (secret["type"], secret["immutable"]) == ("kubernetes.io/ssh-auth", True)
    assert set(secret["data"]) == {"ssh-privatekey", "ssh-publickey"}


def test_the_launcher_job_lets_no_second_pod_start_beside_a_dying_one(run: Run) -> None:
    job = run.here.read(JOBS, "pi-launcher")
    assert job["spec"]["podReplacementPolicy"] == "Failed"
    assert not job["spec"]["suspend"]
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"


def test_the_counters_count_it_once(run: Run) -> None:
    assert run.counted == dict(zip(COUNTERS, (1, 1, 0), strict=True))


def test_only_the_leader_shows_the_job(run: Run, operator: Operator) -> None:
    leader = operator.until_led()
    info = f'mpi_operator_job_info{{launcher="pi-launcher",namespace="{run.namespace}"}}'
    infos = f'mpi_operator_job_infos{{launcher="{run.launcher}",namespace="{run.namespace}"}}'
    for pod in (each["metadata"]["name"] for each in operator.pods()):
        metrics = operator.metrics(pod)
        leads = float(pod == leader)
        assert metrics["mpi_operator_is_leader"] == leads
        assert (metrics.get(info, 0), metrics.get(infos, 0)) == (leads, leads)
        assert not [name for name in metrics if name.endswith("_created") and name.startswith("mpi_operator_jobs")]


def test_kubectl_get_says_how_the_job_is(run: Run) -> None:
    header, row = run.here.run("get", "mpijobs", "pi").splitlines()
    assert header.split() == ["NAME", "STATE", "WORKERS", "RESTARTS", "DURATION", "AGE"]
    assert row.split()[1] == "Succeeded"


def test_deleting_the_job_deletes_every_object_and_its_series(run: Run, operator: Operator) -> None:
    """Comes last: the tests above read what it deletes."""
    run.here.run("delete", "mpijob", "pi", timeout_seconds=60)
    uid = run.finished["metadata"]["uid"]
    for resource in CHILDREN:
        run.here.until(
            resource, lambda objects: not [o for o in objects if uid in str(o["metadata"].get("ownerReferences"))], timeout_seconds=90
        )
    run.here.until(PODS, lambda pods: not pods, timeout_seconds=90)
    run.here.until_gone(MPIJOBS, "pi")
    operator.until_metrics(lambda metrics: not [name for name in metrics if f'namespace="{run.namespace}"' in name])
