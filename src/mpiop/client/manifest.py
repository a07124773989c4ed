"""The MPIJob of what a user asks for."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mpiop.api import constants as c
from mpiop.api.annotations import MAX_RESTARTS, SHM, SSH
from mpiop.api.mpi_implementations import LIBRARIES, Implementation
from mpiop.client.arguments import check_arguments
from mpiop.client.patch import patched
from mpiop.client.pod_fields import empty_dirs, gpu_limits, toleration
from mpiop.client.spec import FILES_PATH, OUTPUT, READ_ONLY, SSH_INJECTED, SSH_MODES, JobSpec


def manifest(spec: JobSpec, name: str) -> dict[str, Any]:
    """Return the MPIJob; without a `name` the API server makes one from the program's.

    Raises:
        InvalidError: An argument or variable is too long for Linux, or the patch is not one.
    """
    library = LIBRARIES[spec.mpi]
    policy: dict[str, Any] = {"cleanPodPolicy": c.CLEAN_RUNNING, "backoffLimit": spec.retries}
    policy |= {} if spec.ttl is None else {"ttlSecondsAfterFinished": spec.ttl}
    policy |= {} if spec.time_limit is None else {"activeDeadlineSeconds": spec.time_limit}
    job: dict[str, Any] = {
        "apiVersion": c.API_VERSION,
        "kind": c.KIND,
        "metadata": _metadata(spec, name),
        "spec": {
            "slotsPerWorker": spec.slots,
            "mpiImplementation": library.name,
            "sshAuthMountPath": f"{spec.home.rstrip('/')}/.ssh",
            "runPolicy": policy,
            "mpiReplicaSpecs": {c.LAUNCHER: _launcher(spec, library), c.WORKER: _worker(spec)},
        },
    }
    job = patched(job, spec.patch)
    check_arguments(job, spec.command if spec.mpi == "openmpi" else ())
    return job


def mpirun(spec: JobSpec) -> list[str]:
    """Return the launcher's command line."""
    library = LIBRARIES[spec.mpi]
    options = [*library.tag_options] if spec.is_tagged else []
    if workdir := _workdir(spec):
        options += ["-wdir", workdir]
    if library.export_option:
        options += [word for name in spec.env for word in (library.export_option, name)]
    return ["mpirun", "-n", str(spec.ranks), *options, *spec.mpirun_args, *spec.command]


def ranks_of(job: Mapping[str, Any], library: Implementation) -> int | None:
    """Return how many ranks the launcher of an MPIJob starts, if its command line begins with that number, as ours does; else None."""
    container = job["spec"]["mpiReplicaSpecs"][c.LAUNCHER]["template"]["spec"]["containers"][0]
    match [*(container.get("command") or ()), *(container.get("args") or ())]:
        case [program, "-n" | "-np", number, *others] if posixpath.basename(program) in library.commands and ":" not in others:
            return int(number) if number.isdecimal() else None
        case _:
            return None


def generated_name(command: Sequence[str]) -> str:
    """Return what a job without a name is called after: its program. A name begins with a letter."""
    program = re.sub(r"[^a-z0-9]+", "-", command[0].rpartition("/")[2].lower())
    return (program if program[:1].isalpha() else f"job-{program.strip('-')}")[:30].strip("-")


def _metadata(spec: JobSpec, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} if name else {"generateName": f"{generated_name(spec.command)}-"}
    restarts = "" if spec.max_restarts is None else str(spec.max_restarts)
    annotations = {
        OUTPUT: "tagged" if spec.is_tagged else "",
        SHM.name: spec.shm,
        MAX_RESTARTS.name: restarts,
        SSH.name: SSH_MODES[spec.ssh],
    }
    if annotations := _filled(annotations):
        metadata["annotations"] = annotations
    if labels := {**spec.labels, **_filled({c.LABEL_QUEUE: spec.queue})}:
        metadata["labels"] = labels
    return metadata


def _launcher(spec: JobSpec, library: Implementation) -> dict[str, Any]:
    program, *words = mpirun(spec)
    if spec.check:
        program, words = "/bin/sh", ["-c", f'set -e\n{spec.check}\nexec "$@"', "sh", program, *words]
    container: dict[str, Any] = {"name": c.ROLE_LAUNCHER, "image": spec.image, "command": [program], "args": escaped(words)}
    container["env"] = _environment({**library.root_environment, **spec.env})
    container |= {"stdin": True, "stdinOnce": True} if spec.has_stdin else {}
    return {"restartPolicy": c.NEVER, "template": _template(spec, container)}


def _worker(spec: JobSpec) -> dict[str, Any]:
    container: dict[str, Any] = {"name": c.ROLE_WORKER, "image": spec.image}
    if spec.user is not None and spec.ssh != SSH_INJECTED:
        container |= {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", f"{spec.home.rstrip('/')}/.sshd_config"]}
    if spec.env:
        container["env"] = _environment(spec.env)
    requests = {"cpu": spec.cpu, "memory": spec.memory}
    limits = {"memory": spec.memory, **gpu_limits(spec.gpus)}
    resources = {"requests": _filled(requests), "limits": _filled(limits)}
    if any(resources.values()):
        container["resources"] = {kind: values for kind, values in resources.items() if values}
    return {"replicas": spec.workers, "template": _template(spec, container)}


def _template(spec: JobSpec, container: dict[str, Any]) -> dict[str, Any]:
    return {**({"metadata": {"labels": dict(spec.labels)}} if spec.labels else {}), "spec": _pod(spec, container)}


def _pod(spec: JobSpec, container: dict[str, Any]) -> dict[str, Any]:
    volumes, mounts = empty_dirs(spec.empty_dirs)
    if spec.files is not None:
        name, names = spec.files
        items = [{"key": key, "path": path} for key, path in names.items()]
        volumes.append({"name": "files", "configMap": {"name": name, "items": items, "defaultMode": 0o755}})
        mounts.append({"name": "files", "mountPath": FILES_PATH})
    claims = list(dict.fromkeys(claim.removesuffix(READ_ONLY) for claim in spec.mounts.values()))
    volumes += [{"name": f"mount-{number}", "persistentVolumeClaim": {"claimName": claim}} for number, claim in enumerate(claims)]
    for path, claim in spec.mounts.items():
        mount = {"name": f"mount-{claims.index(claim.removesuffix(READ_ONLY))}", "mountPath": path}
        mounts.append(mount | ({"readOnly": True} if claim.endswith(READ_ONLY) else {}))
    pod: dict[str, Any] = {"containers": [container | ({"volumeMounts": mounts} if mounts else {})]}
    pod |= {"volumes": volumes} if volumes else {}
    pod |= {"priorityClassName": spec.priority} if spec.priority else {}
    pod |= {"securityContext": {"runAsUser": spec.user}} if spec.user is not None else {}
    return pod | _placement(spec)


def _placement(spec: JobSpec) -> dict[str, Any]:
    """Return the fields of a Pod that decide where it runs, and as whom."""
    fields = {
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [toleration(text) for text in spec.tolerations],
        "imagePullSecrets": [{"name": name} for name in spec.image_pull_secrets],
        "serviceAccountName": spec.service_account,
        "hostNetwork": spec.host_network,
    }
    return {name: value for name, value in fields.items() if value}


def escaped(words: Sequence[str]) -> list[str]:
    """Return `words` so that the ranks get them as they are: Kubernetes makes `$` of `$$`, and a value of `$(NAME)`."""
    return [word.replace("$", "$$") for word in words]


def _environment(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in zip(values, escaped([*values.values()]), strict=True)]


def _workdir(spec: JobSpec) -> str:
    return spec.workdir or (FILES_PATH if spec.files is not None else "")


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
