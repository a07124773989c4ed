"""The condition Warnings: what the API server warned of when Pods and Job were created, and parts of a spec that cannot work."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.injected_ssh import is_injected
from mpiop.controller.objects.ssh_script import names_agent
from mpiop.controller.status import conditions as cond
from mpiop.kube.text import truncated

REASON: Final = "TemplateWarnings"
_HIDDEN: Final = re.compile(r'hides previous definition of "([^"]+)"')


def template_warnings(job: MPIJob, options: BuildOptions, warned: Iterable[str]) -> Sequence[str]:
    """Return what cannot work in the spec of `job`, and what the API server `warned` of, except variables of our own."""
    return [*_of_spec(job), *_of_ssh(job, options), *(text for text in warned if not _is_about_ours(job, text))]


def with_warnings(status: MPIJobStatus, warnings: Iterable[str], now: datetime) -> MPIJobStatus:
    """Return `status` with those of `warnings` that its condition does not have yet; each create is answered only once."""
    old = status.true_condition(c.CONDITION_WARNINGS)
    message = old.message if old is not None else ""
    new = [text for text in warnings if text not in message]
    text = truncated("; ".join(filter(None, (message, *new))))
    if text == message or status.is_finished:
        return status
    row = cond.make(c.CONDITION_WARNINGS, "True", REASON, text, now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def without_warnings(status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status` for a job that starts again: its Pods are created again, with new warnings."""
    if not status.is_true(c.CONDITION_WARNINGS):
        return status
    row = cond.make(c.CONDITION_WARNINGS, "False", "Resumed", "The Pods are created again.", now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def _is_about_ours(job: MPIJob, text: str) -> bool:
    """Return whether the API server warns of a variable that we set twice, because the user may set it by `envFrom`."""
    hidden = _HIDDEN.search(text)
    return hidden is not None and hidden[1] not in _own_variables(job)


def _own_variables(job: MPIJob) -> set[str]:
    templates = [replicas.template for replicas in (job.launcher, job.worker) if replicas is not None]
    containers = (each for template in templates for kind in ("containers", "initContainers") for each in template["spec"].get(kind) or ())
    return {str(variable.get("name")) for container in containers for variable in container.get("env") or ()}


def _of_ssh(job: MPIJob, options: BuildOptions) -> Iterator[str]:
    """Yield that the image's ssh refuses the job's key: root's ssh accepts no key of root that a group may read.

    With `fsGroup`, the kubelet makes the files of a Secret readable to that group, whatever their mode is. Source: kubernetes
    pkg/volume/volume_linux.go, OpenSSH authfile.c sshkey_perm_ok.
    """
    pod: dict[str, Any] = dict(job.launcher.template["spec"])
    shared: dict[str, Any] = pod.get("securityContext") or {}
    security: dict[str, Any] = shared | (job.launcher.container.get("securityContext") or {})
    user = security.get("runAsUser")
    is_root = user == 0 or (user is None and not security.get("runAsNonRoot"))
    if shared.get("fsGroup") is None or not is_root or job.ssh_auth_mount_path != c.DEFAULT_SSH_AUTH_MOUNT_PATH:
        return
    if job.worker is not None and not names_agent(job) and not is_injected(job, options):
        yield (
            "the launcher's Pod has fsGroup: the kubelet lets that group read the SSH key, and ssh, run as root, refuses such a key, so it "
            "reaches no worker. Remove fsGroup from the launcher, or set mpiop.kubeflow.org/ssh: Injected"
        )


def _of_spec(job: MPIJob) -> Iterator[str]:
    if job.slots_per_worker == 0 and job.worker is not None:
        yield "spec.slotsPerWorker is 0: mpirun starts nothing on the workers. Set it to the number of processes of each worker"
    if version := job.library.crashing_version(job.name):
        yield (
            f"the name of the job has {len(job.name)} characters and no digit: mpirun of {version} crashes "
            f"if such a name has more than {job.library.longest_job_name[version]}. "
            "Choose a shorter name or one with a digit, unless the image has another version"
        )
