"""The worker pods."""

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from mpiop.api import constants as c
from mpiop.api.names import worker_name
from mpiop.api.types import MPIJob, ReplicaSpec
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions, injected_ssh, ssh_script
from mpiop.controller.objects import pod_template as pt
from mpiop.kube.objects import Object

DEFAULT_CLUSTER_DOMAIN: Final = "cluster.local"
_SSHD: Final = re.compile(r"\bsshd\b")
"""The program, not its `sshd_config`."""


class WorkerBuilder(Protocol):
    """Builds worker pods of one job."""

    def __call__(self, index: int, *, rejections: int = 0) -> Object:
        """Return the pod of an index, which notes how many of its name were rejected in a row before it."""
        ...


def worker_builder(job: MPIJob, options: BuildOptions) -> WorkerBuilder:
    """Return the function that builds the worker pod of an index from 0, which may be beyond the desired replicas.

    The common parts of all workers are built once and shared: building them for each of a thousand took a twentieth of the operator's
    processor time.

    Args:
        job: With a worker replica spec.
        options: For cluster domain and scheduler.

    Raises:
        ValueError: `job` has no workers.
    """
    if job.worker is None:
        raise ValueError(f"cannot build workers of {job.key}: the job has no Worker replica spec")
    template = _first_template(job, job.worker, options)

    def build(index: int, *, rejections: int = 0) -> Object:
        name = worker_name(job.name, index)
        metadata = names.child_metadata(job, name, template["metadata"]["labels"] | names.pod_labels(job, c.ROLE_WORKER, worker=index))
        noted = {names.ANNOTATION_REJECTIONS: str(rejections)} if rejections else {}
        metadata["annotations"] = template["metadata"]["annotations"] | noted
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] | {"hostname": name}}

    return build


def _first_template(job: MPIJob, worker: ReplicaSpec, options: BuildOptions) -> pt.Template:
    template = pt.copied_template(worker)
    pt.apply_identity(template, worker_name(job.name, 0), job.service_name, names.pod_labels(job, c.ROLE_WORKER, worker=0))
    template["spec"]["restartPolicy"] = worker.restart_policy
    _apply_search(template, f"{job.service_name}.{job.namespace}.svc.{options.cluster_domain or DEFAULT_CLUSTER_DOMAIN}")
    if injects_agent := injected_ssh.is_injected(job, options):
        injected_ssh.apply_server(template, job.checkpoint)
    container = pt.first_container(template)
    if not container.get("command") and not container.get("args"):
        container["command"] = ["/usr/sbin/sshd", "-De"]
    pt.add_environment(container, {pt.ROLE_VARIABLE: c.ROLE_WORKER})
    pt.apply_ssh_keys(template, job.secret_name, job.ssh_auth_mount_path)
    pt.apply_shared_memory(template, job.shm)
    ssh_script.apply_script(template, job, is_launcher=False, injects_agent=injects_agent)
    if injects_agent:
        injected_ssh.apply_program(template, job.secret_name, options)
    pt.apply_gang(template, job.pod_group_name, options.gang_scheduler)
    pt.apply_failed_nodes(template, job.avoided_nodes)
    template["metadata"]["annotations"].pop(names.ANNOTATION_REJECTIONS, None)  # of a template that was copied from a pod
    if job.restart.has_budget:
        template["metadata"]["annotations"][names.ANNOTATION_RESTART_COUNT] = str(job.status.restarts)
    return template


def _apply_search(template: pt.Template, domain: str) -> None:
    """Make the pod resolve the short names of other workers, which are in `domain`, as the daemons of Hydra and PRRTE do."""
    config = pt.section(template["spec"], "dnsConfig")
    template["spec"]["dnsConfig"] = {**config, "searches": [*(config.get("searches") or ()), domain]}


def runs_sshd(worker: ReplicaSpec | None, message: str = "") -> bool:
    """Return whether the worker's command is an sshd, as it is by default; `message` is what its container ended with."""
    container: Mapping[str, Any] = worker.container if worker else {}
    if not container.get("command"):
        return True
    return bool(_SSHD.search(f"{container['command']} {container.get('args')} {message}"))
