"""Puts mpiop-agent into the pods of jobs whose images have no ssh. It is both client and server (docs/adr/0018-agent.md).

The agent needs nothing of the image. An init container copies it to a volume, or its own image is the volume, which starts faster. Both
sides prove with the key of the job's Secret that they belong to the job. The key is mounted a second time, readable by any user of the
container, because the modes in `sshAuthMountPath` are those that OpenSSH requires.
"""

from collections.abc import Mapping
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.checkpoint import Checkpoint
from mpiop.api.types import MPIJob
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects import pod_template as pt

PROGRAM: Final = f"{c.AGENT_FOLDER}/mpiop-agent"
KEY: Final = f"{c.AGENT_KEY_FOLDER}/key"

_VOLUME: Final = "mpiop-agent"
_KEY_VOLUME: Final = "mpiop-agent-key"
_NODE_VARIABLE: Final = "MPIOP_NODE"
_READABLE: Final = 0o444
_TERMINATION_SECONDS: Final = 30
"""Default of `terminationGracePeriodSeconds`. Source: kubernetes pkg/apis/core/v1/defaults.go."""
# Requests are the limits, so that a Guaranteed pod stays one; containers that start later need more.
_RESOURCES: Final = {"cpu": "100m", "memory": "32Mi"}


def is_injected(job: MPIJob, options: BuildOptions) -> bool:
    """Return whether the agent is put into the pods of `job`: by its annotation, else by the operator's flag.

    The flag does not apply to jobs that bring an sshd of their own, or mount something over the agent.
    """
    if job.worker is None:
        return False
    if job.ssh:
        return job.ssh == c.SSH_INJECTED
    if options.ssh != c.SSH_INJECTED or _has_command(job.worker.container):
        return False
    return not pt.is_covered(job.containers, c.AGENT_FOLDERS)


def apply_program(template: pt.Template, secret_name: str, options: BuildOptions) -> None:
    """Put the agent and the job's key into the pod."""
    spec, container = template["spec"], pt.first_container(template)
    if options.agent_delivery == c.AGENT_MOUNTED:
        pt.add_volume(spec, {"name": _VOLUME, "image": {"reference": options.agent_image, "pullPolicy": "IfNotPresent"}})
    else:
        spec["initContainers"] = [_init_container(spec, options), *(spec.get("initContainers") or ())]
        pt.add_volume(spec, {"name": _VOLUME, "emptyDir": {}})
    items = [{"key": "ssh-privatekey", "path": "key", "mode": _READABLE}]
    pt.add_volume(spec, {"name": _KEY_VOLUME, "secret": {"secretName": secret_name, "items": items}})
    pt.add_mount(container, {"name": _VOLUME, "mountPath": c.AGENT_FOLDER, "readOnly": True})
    pt.add_mount(container, {"name": _KEY_VOLUME, "mountPath": c.AGENT_KEY_FOLDER, "readOnly": True})


def apply_server(template: pt.Template, checkpoint: Checkpoint | None) -> None:
    """Make the worker run the agent as its server, unless the template sets a command."""
    container = pt.first_container(template)
    if _has_command(container):
        return
    container["command"] = [PROGRAM, "sshd", "--key", KEY, *(_checkpoint_flags(checkpoint, "checkpoint-") if checkpoint else ())]
    if checkpoint is not None:
        _extend_grace(template, checkpoint)
    node = {"name": _NODE_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    variables: list[dict[str, Any]] = container.get("env") or []
    given = [variable for variable in variables if variable.get("name") != _NODE_VARIABLE]
    container["env"] = [*given, node]
    ports: list[dict[str, Any]] = container.get("ports") or []
    if template["spec"].get("hostNetwork") and not any(port.get("containerPort") == c.AGENT_PORT for port in ports):
        # The scheduler then places no second worker on a node, where the port is taken.
        container["ports"] = [*ports, {"containerPort": c.AGENT_PORT}]


def apply_checkpoint(template: pt.Template, checkpoint: Checkpoint | None, flags: Mapping[str, str]) -> None:
    """Make the launcher ask all ranks to save their work before it gets its TERM, which `mpirun` would pass on to them.

    Args:
        template: Of the launcher. What it does itself before its end is kept, and ranks are not asked then.
        checkpoint: Of the job; None does nothing.
        flags: By which the agent finds the workers.
    """
    container = pt.first_container(template)
    if checkpoint is None or pt.section(container, "lifecycle").get("preStop"):
        return
    words = [f"--{name}={value}" for name, value in flags.items()]
    command = [PROGRAM, "checkpoint", *words, f"--key={KEY}", *_checkpoint_flags(checkpoint)]
    container["lifecycle"] = {**pt.section(container, "lifecycle"), "preStop": {"exec": {"command": command}}}
    _extend_grace(template, checkpoint)


def _checkpoint_flags(checkpoint: Checkpoint, prefix: str = "") -> list[str]:
    return [f"--{prefix}signal={checkpoint.signal}", f"--{prefix}grace={checkpoint.grace_seconds}s"]


def _extend_grace(template: pt.Template, checkpoint: Checkpoint) -> None:
    """Give the pod the time for a checkpoint, and then what it would have had without."""
    spec = template["spec"]
    seconds = spec.get("terminationGracePeriodSeconds")
    spec["terminationGracePeriodSeconds"] = checkpoint.grace_seconds + (_TERMINATION_SECONDS if seconds is None else seconds)


def _has_command(container: Mapping[str, Any]) -> bool:
    return bool(container.get("command") or container.get("args"))


def _init_container(spec: dict[str, Any], options: BuildOptions) -> dict[str, Any]:
    security: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    # Under the pod's user; the image's own is 65532.
    if pt.section(spec, "securityContext").get("runAsUser") != 0:
        security["runAsNonRoot"] = True
    return {
        "name": _VOLUME,
        "image": options.agent_image,
        "args": ["install", c.AGENT_FOLDER],
        "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
        "securityContext": security,
        "volumeMounts": [{"name": _VOLUME, "mountPath": c.AGENT_FOLDER}],
    }
