"""Functions to extend a user's pod template, shared by launcher and workers.

The functions that return None change the fresh copy that `copied_template` made, never the user's template.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from mpiop.api import constants as c
from mpiop.api.gang_schedulers import gang_scheduler
from mpiop.api.paths import absolute, overlap
from mpiop.api.types import ReplicaSpec

Template = dict[str, Any]
"""`corev1.PodTemplateSpec` with metadata.labels, metadata.annotations and spec.containers present."""

SSH_VOLUME: Final = "ssh-auth"
SHM_VOLUME: Final = "mpiop-shm"
SHM_PATH: Final = "/dev/shm"  # noqa: S108 - of the container
ROLE_VARIABLE: Final = "K_MPI_JOB_ROLE"

NO_GPU: Final[Mapping[str, str]] = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
"""Prevents the NVIDIA runtime from exposing the node's devices to a container that requests none, whatever its image sets."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ROOT_ONLY: Final = 0o600


def copied_template(spec: ReplicaSpec) -> Template:
    """Return a copy of the template with the labels and annotations of its metadata and its whole spec."""
    metadata = section(spec.template, "metadata")
    return {
        "metadata": {
            "labels": dict(section(metadata, "labels")),
            "annotations": dict(section(metadata, "annotations")),
        },
        "spec": copied(spec.template["spec"]),
    }


def apply_identity(template: Template, hostname: str, subdomain: str, labels: Mapping[str, str]) -> None:
    """Set the host name and subdomain of the pod, and the operator's labels, which override the template's."""
    template["metadata"]["labels"].update(labels)
    spec = template["spec"]
    spec["hostname"] = hostname
    spec["subdomain"] = subdomain
    if spec.get("hostNetwork"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"


def apply_gang(template: Template, group: str, scheduler_name: str) -> None:
    """Set the PodGroup and the scheduler of the pod if gang scheduling is on: `scheduler_name` is the value of `--gang-scheduling`.

    Kubernetes' own gangs are placed by whichever scheduler the template names, or by the default one.
    """
    if not scheduler_name:
        return
    scheduler = gang_scheduler(scheduler_name)
    if scheduler.is_native:
        template["spec"]["schedulingGroup"] = {"podGroupName": group}
    else:
        template["spec"]["schedulerName"] = scheduler_name
    if scheduler.pod_annotation:
        template["metadata"]["annotations"][scheduler.pod_annotation] = group
    if scheduler.pod_label:
        template["metadata"]["labels"][scheduler.pod_label] = group


def apply_failed_nodes(template: Template, nodes: Collection[str]) -> None:
    """Keep the pod off the nodes that failed; of the user's alternatives, each has to hold without them."""
    if not nodes:
        return
    affinity = dict(section(template["spec"], "affinity"))
    node_affinity = dict(section(affinity, "nodeAffinity"))
    required = dict(section(node_affinity, _REQUIRED))
    # By name, for the label kubernetes.io/hostname may be another; a field takes one value.
    rules = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    terms: Sequence[dict[str, Any]] = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [term | {"matchFields": [*(term.get("matchFields") or ()), *rules]} for term in terms]
    template["spec"]["affinity"] = affinity | {"nodeAffinity": node_affinity | {_REQUIRED: required}}


def apply_ssh_keys(template: Template, secret_name: str, mount_path: str) -> None:
    """Mount the job's key pair into the first container, where its user's ssh and sshd look for it."""
    secret: dict[str, Any] = {
        "secretName": secret_name,
        "items": [
            {"key": "ssh-privatekey", "path": "id_rsa"},
            {"key": "ssh-publickey", "path": "id_rsa.pub"},
            {"key": "ssh-publickey", "path": "authorized_keys"},
        ],
    }
    if absolute(mount_path) == c.DEFAULT_SSH_AUTH_MOUNT_PATH:
        # Another user than root could not read such files: they belong to root.
        secret["defaultMode"] = _ROOT_ONLY
    add_volume(template["spec"], {"name": SSH_VOLUME, "secret": secret})
    add_mount(first_container(template), {"name": SSH_VOLUME, "mountPath": mount_path})


def apply_shared_memory(template: Template, size: str) -> None:
    """Give the first container shared memory of that size ("" leaves it as it is), unless the template mounts something there."""
    container = first_container(template)
    if size and not overlaps(container, SHM_PATH):
        add_volume(template["spec"], {"name": SHM_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}})
        add_mount(container, {"name": SHM_VOLUME, "mountPath": SHM_PATH})


def section(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object `parent[name]`; an absent or null one is empty."""
    value: Mapping[str, Any] = parent.get(name) or {}
    return value


def first_container(template: Template) -> dict[str, Any]:
    """Return the first container; the operator does not change the others."""
    container: dict[str, Any] = template["spec"]["containers"][0]
    return container


def add_environment(container: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Append those variables that the user has not set."""
    given: list[dict[str, Any]] = container.get("env") or []
    taken = {variable.get("name") for variable in given}
    container["env"] = given + [{"name": name, "value": value} for name, value in variables.items() if name not in taken]


def add_defaults(container: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Append those variables that the user has not set, neither in `env` nor by `envFrom`.

    Only the kubelet knows what is in the ConfigMaps and Secrets of `envFrom`, over which `env` takes precedence. So a reference to the same
    key follows each variable, which replaces it, or does nothing if there is no such key (docs/adr/0030-defaults-after-env-from.md).
    """
    taken = {variable.get("name") for variable in container.get("env") or ()}
    add_environment(container, variables)
    sources: Sequence[Mapping[str, Any]] = container.get("envFrom") or ()
    container["env"] += [
        {"name": name, "valueFrom": reference}
        for name in variables
        if name not in taken
        for source in sources
        for reference in _references(source, name)
    ]


def _references(source: Mapping[str, Any], variable: str) -> Iterator[dict[str, Any]]:
    """Yield the references to what the source of `envFrom` has for the variable: one, or none if its prefix is another."""
    key = variable.removeprefix(source.get("prefix") or "")
    if not key or not variable.startswith(source.get("prefix") or ""):
        return
    for kind in ("configMap", "secret"):
        if name := section(source, f"{kind}Ref").get("name"):
            yield {f"{kind}KeyRef": {"name": name, "key": key, "optional": True}}


def add_variable(container: dict[str, Any], variable: dict[str, Any]) -> None:
    """Append a variable, unless the user has set one of that name."""
    given: list[dict[str, Any]] = container.get("env") or []
    if all(other.get("name") != variable["name"] for other in given):
        container["env"] = [*given, variable]


def override_environment(container: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Set the variables, and override the user's values."""
    kept = [variable for variable in container.get("env") or () if variable.get("name") not in variables]
    container["env"] = kept + [{"name": name, "value": value} for name, value in variables.items()]


def has_volume(spec: Mapping[str, Any], name: str) -> bool:
    """Return whether the pod has a volume of that name."""
    return any(volume.get("name") == name for volume in spec.get("volumes") or ())


def add_volume(spec: dict[str, Any], volume: dict[str, Any]) -> None:
    """Append a volume, unless the user has one of that name, which is mounted instead."""
    if not has_volume(spec, volume["name"]):
        spec["volumes"] = [*(spec.get("volumes") or ()), volume]


def add_mount(container: dict[str, Any], mount: dict[str, Any]) -> None:
    """Append a mount, unless the user mounts something at that path."""
    path: str = mount["mountPath"]
    if absolute(path) not in mount_paths(container):
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def mount_paths(container: Mapping[str, Any]) -> list[str]:
    """Return where the container mounts its volumes: absolute, normalised paths."""
    return [absolute(mount.get("mountPath", "")) for mount in container.get("volumeMounts") or ()]


def overlaps(container: Mapping[str, Any], path: str) -> bool:
    """Return whether the container mounts something at, above or below the absolute `path`."""
    return any(overlap(mounted, path) for mounted in mount_paths(container))


def is_covered(containers: Collection[Mapping[str, Any]], paths: Collection[str]) -> bool:
    """Return whether one of the containers mounts something at, above or below one of the absolute `paths`."""
    return any(overlaps(container, path) for container in containers for path in paths)


def annotation_item(annotation: str, path: str) -> dict[str, Any]:
    """Return the item of a downward API volume for the annotation; without the annotation the file is empty."""
    return {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value (several times faster than `copy.deepcopy`, which has to expect cycles)."""
    if isinstance(value, dict):
        return {key: copied(member) for key, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [copied(item) for item in cast("Sequence[Any]", value)]
    return value
