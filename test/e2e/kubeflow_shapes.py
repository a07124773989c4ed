"""Objects as Kubeflow's MPI Operator 0.8.2 makes them, for Open MPI: what is found on a cluster on which mpiop takes its place.

`test_kubeflow.py` has the real one make them.
"""

import copy
import datetime as dt
from base64 import b64encode
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from e2e.kubectl import Obj

OPERATOR = {"training.kubeflow.org/operator-name": "mpi-operator"}
LAUNCHER_ENVIRONMENT = {
    "K_MPI_JOB_ROLE": "launcher",
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    "OMPI_MCA_orte_set_default_slots": "1",
    "NVIDIA_VISIBLE_DEVICES": "",
    "NVIDIA_DRIVER_CAPABILITIES": "",
}
MESSAGES = {"Created": "is created.", "Running": "is running."}


def dependencies(job: Obj) -> list[Obj]:
    """Return Service, ConfigMap and Secret of a stored MPIJob."""
    name, workers = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    hosts = [f"{name}-worker-{index}.{name}.{job['metadata']['namespace']}.svc" for index in range(workers)]
    data = {"hostfile": "".join(f"{host} slots=1\n" for host in hosts), "discover_hosts.sh": "#!/bin/sh\n"}
    selector = {**OPERATOR, "training.kubeflow.org/job-name": name}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(job, name), "spec": {"clusterIP": "None", "selector": selector}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(job, f"{name}-config"), "data": data},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _metadata(job, f"{name}-ssh"),
            "type": "kubernetes.io/ssh-auth",
            "data": _key_pair(),
        },
    ]


def worker(job: Obj, index: int) -> Obj:
    """Return a worker's Pod."""
    name = f"{job['metadata']['name']}-worker-{index}"
    template = _template(job, "Worker", name, {"training.kubeflow.org/replica-index": str(index)})
    namespace = job["metadata"]["namespace"]
    template["spec"]["dnsConfig"] = {"searches": [f"{job['metadata']['name']}.{namespace}.svc.cluster.local"]}
    template["spec"]["containers"][0]["env"] = [{"name": "K_MPI_JOB_ROLE", "value": "worker"}]
    metadata = {**_metadata(job, name), "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def launcher(job: Obj) -> Obj:
    """Return the launcher's Job."""
    name, policy = f"{job['metadata']['name']}-launcher", job["spec"]["runPolicy"]
    template = _template(job, "Launcher", name, {})
    pod = template["spec"]
    container = pod["containers"][0]
    container["env"] = [{"name": key, "value": value} for key, value in LAUNCHER_ENVIRONMENT.items()]
    files = [
        {"key": "hostfile", "path": "hostfile", "mode": 0o444},
        {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
    ]
    config_map = {"name": f"{job['metadata']['name']}-config", "items": files}
    pod["volumes"].append({"name": "mpi-job-config", "configMap": config_map})
    container["volumeMounts"].append({"name": "mpi-job-config", "mountPath": "/etc/mpi"})
    passed_on = {key: policy[key] for key in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit") if key in policy}
    spec = {**passed_on, "template": template, "podReplacementPolicy": "Failed", "suspend": policy.get("suspend", False)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(job, name), "spec": spec}


def status(job: Obj, *types: str) -> Obj:
    """Return the status after those conditions came, in that order: Created, Running, Suspended."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    where = f"MPIJob {job['metadata']['namespace']}/{job['metadata']['name']}"
    rows = [(type_, "True", f"MPIJob{type_}", f"{where} {MESSAGES[type_]}") for type_ in types if type_ != "Suspended"]
    replicas: Obj = {"Worker": {}}
    if "Suspended" in types:
        rows += [
            ("Suspended", "True", "MPIJobSuspended", "MPIJob suspended"),
            ("Running", "False", "MPIJobSuspended", f"{where} is suspended."),
        ]
    if "Running" in types:
        replicas = {"Launcher": {"active": 1}, "Worker": {"active": job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]}}
    names = ("type", "status", "reason", "message")
    times = {"lastUpdateTime": now, "lastTransitionTime": now}
    conditions = [{**dict(zip(names, row, strict=True)), **times} for row in rows]
    started = {} if "Suspended" in types else {"startTime": now}
    return {"conditions": conditions, "replicaStatuses": replicas, **started}


def deployment(image: str, *arguments: str) -> Obj:
    """Return its Deployment, standalone, with another image."""
    labels = {
        "app": "mpi-operator",
        "app.kubernetes.io/component": "mpijob",
        "app.kubernetes.io/name": "mpi-operator",
        "kustomize.component": "mpi-operator",
    }
    container = {"name": "mpi-operator", "image": image, "args": ["-alsologtostderr", "--lock-namespace=mpi-operator", *arguments]}
    template = {
        "metadata": {"labels": labels, "annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": {"containers": [container], "serviceAccountName": "mpi-operator"},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mpi-operator", "namespace": "mpi-operator", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _metadata(job: Obj, name: str) -> Obj:
    owner = {key: job[key] for key in ("apiVersion", "kind")} | {key: job["metadata"][key] for key in ("name", "uid")}
    return {
        "name": name,
        "namespace": job["metadata"]["namespace"],
        "labels": {"app": job["metadata"]["name"]},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }


def _template(job: Obj, role: str, hostname: str, labels: dict[str, str]) -> dict[str, Any]:
    name, spec = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"][role]
    template: dict[str, Any] = copy.deepcopy({"metadata": {}, **spec["template"]})
    own = {**OPERATOR, "training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": role.lower()}
    template["metadata"]["labels"] = {**template["metadata"].get("labels", {}), **own, **labels}
    pod = template["spec"]
    pod |= {
        "hostname": hostname,
        "subdomain": name,
        "restartPolicy": "Never" if role == "Worker" else spec.get("restartPolicy", "OnFailure"),
    }
    keys = [
        {"key": "ssh-privatekey", "path": "id_rsa"},
        {"key": "ssh-publickey", "path": "id_rsa.pub"},
        {"key": "ssh-publickey", "path": "authorized_keys"},
    ]
    pod["volumes"] = [*pod.get("volumes", []), {"name": "ssh-auth", "secret": {"secretName": f"{name}-ssh", "items": keys}}]
    container = pod["containers"][0]
    mount = {"name": "ssh-auth", "mountPath": job["spec"]["sshAuthMountPath"]}
    container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
    return template


def _key_pair() -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n"
    return {"ssh-privatekey": b64encode(private).decode(), "ssh-publickey": b64encode(public).decode()}
