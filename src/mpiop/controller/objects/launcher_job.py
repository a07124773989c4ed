"""The Job that runs the launcher."""

from collections.abc import Mapping
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions, binding, injected_ssh, ssh_script
from mpiop.controller.objects import pod_template as pt
from mpiop.controller.objects.config_map import CONFIG_MOUNT_PATH, DISCOVER_HOSTS, HOSTFILE
from mpiop.controller.objects.launcher_environment import launcher_environment
from mpiop.controller.objects.revision import launcher_revision, start_revision
from mpiop.kube.objects import Object

CONFIG_VOLUME: Final = "mpi-job-config"
RESTART_COUNT_VARIABLE: Final = "MPIOP_RESTART_COUNT"


def build_launcher_job(job: MPIJob, options: BuildOptions, *, limits: Mapping[str, int | None], suspend: bool) -> Object:
    """Return the launcher Job.

    Args:
        job: Whose launcher it is.
        options: For cluster domain and scheduler.
        limits: Fields of its spec (`launcher_limits`); None leaves a field to the API server.
        suspend: Whether the Job must not make its pod yet.
    """
    metadata = names.child_metadata(job, job.launcher_name)
    metadata["annotations"] = dict(revisions(job))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            **{name: value for name, value in limits.items() if value is not None},
            # One launcher at a time: another only when the one before has ended, not when it begins to.
            "podReplacementPolicy": "Failed",
            "suspend": suspend,
            "template": build_launcher_template(job, options),
        },
    }


def revisions(job: MPIJob) -> Mapping[str, str]:
    """Return the annotations of the launcher Job with the revisions of its MPIJob."""
    return {
        names.ANNOTATION_LAUNCHER_REVISION: launcher_revision(job),
        names.ANNOTATION_START_REVISION: start_revision(job),
        names.ANNOTATION_START_GENERATION: str(job.generation),
    }


def build_launcher_template(job: MPIJob, options: BuildOptions) -> pt.Template:
    """Return the pod template of the launcher Job."""
    template = pt.copied_template(job.launcher)
    # The Job controller does not hand it on; programs that read the template find it there, as in the reference's.
    template["metadata"]["ownerReferences"] = [names.owner_reference(job.name, job.uid)]
    pt.apply_identity(template, job.launcher_name, job.service_name, names.pod_labels(job, c.ROLE_LAUNCHER))
    template["spec"]["restartPolicy"] = job.launcher.restart_policy
    container = pt.first_container(template)
    environment, additions = launcher_environment(job)
    if injects_agent := injected_ssh.is_injected(job, options):
        additions = {**additions, **job.library.agent_environment, **binding.launcher_environment(job)}
    pt.add_environment(container, {pt.ROLE_VARIABLE: c.ROLE_LAUNCHER, **environment})
    pt.add_defaults(container, additions)
    if not job.run_launcher_as_worker:
        pt.override_environment(container, pt.NO_GPU)
    pt.apply_ssh_keys(template, job.secret_name, job.ssh_auth_mount_path)
    pt.apply_failed_nodes(template, job.avoided_nodes)
    _apply_config(template, job.config_map_name)
    pt.apply_shared_memory(template, job.shm)
    pt.apply_gang(template, job.pod_group_name, options.gang_scheduler)
    ssh_script.apply_script(template, job, is_launcher=True, injects_agent=injects_agent)
    if injects_agent:
        injected_ssh.apply_program(template, job.secret_name, options)
        injected_ssh.apply_checkpoint(template, job.checkpoint, ssh_script.checkpoint_flags(job.key))
    _apply_restart_count(template, job.status.restarts, has_budget=job.restart.has_budget)
    return template


def _apply_restart_count(template: pt.Template, restarts: int, *, has_budget: bool) -> None:
    """Set the number of the restart. A template that was copied from a pod must not keep the number of another job."""
    annotations = template["metadata"]["annotations"]
    for name in (names.ANNOTATION_BEGAN_WITH, names.ANNOTATION_RESTART_COUNT):
        annotations.pop(name, None)
    if has_budget or restarts:
        annotations[names.ANNOTATION_RESTART_COUNT] = str(restarts)
    if has_budget:
        # A variable cannot change in the template of a Job, but an annotation can while the Job is suspended.
        source = {"fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_RESTART_COUNT}']"}}
        pt.add_variable(pt.first_container(template), {"name": RESTART_COUNT_VARIABLE, "valueFrom": source})


def _apply_config(template: pt.Template, config_map: str) -> None:
    """Mount hostfile and discover_hosts.sh at `/etc/mpi`."""
    files = [
        {"key": HOSTFILE, "path": HOSTFILE, "mode": 0o444},
        {"key": DISCOVER_HOSTS, "path": DISCOVER_HOSTS, "mode": 0o555},
    ]
    pt.add_volume(template["spec"], {"name": CONFIG_VOLUME, "configMap": {"name": config_map, "items": files}})
    pt.add_mount(pt.first_container(template), {"name": CONFIG_VOLUME, "mountPath": CONFIG_MOUNT_PATH})
