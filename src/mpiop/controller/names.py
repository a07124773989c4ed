"""Labels, annotations and owner references of the children of a job; the job itself knows their names.

Other programs rely on them (Kueue, dashboards, scripts), so they are those of Kubeflow's operator (docs/compatibility.md, section 3).
"""

from collections.abc import Mapping
from typing import Final

from mpiop.api import constants as c
from mpiop.api.annotation_row import Annotation
from mpiop.api.names import launcher_name
from mpiop.api.types import MPIJob
from mpiop.kube.objects import ControllerId, Key, ObjectMeta, OwnerReference

ANNOTATION_PREFIX: Final = "mpiop.kubeflow.org/"
"""What the names of all annotations of our own begin with."""
ANNOTATION_ADDRESSES: Final = "mpiop.kubeflow.org/addresses"
ANNOTATION_PUBLISHED_AT: Final = "mpiop.kubeflow.org/addresses-published-at"
ANNOTATION_BEGAN_WITH: Final = "mpiop.kubeflow.org/began-with"
ANNOTATION_RESTART_COUNT: Final = "mpiop.kubeflow.org/restart-count"
ANNOTATION_SECRET_UID: Final = "mpiop.kubeflow.org/ssh-secret-uid"  # noqa: S105 - the name of an annotation
ANNOTATION_REJECTIONS: Final = "mpiop.kubeflow.org/rejections"
ANNOTATION_LAUNCHER_REVISION: Final = "mpiop.kubeflow.org/launcher-revision"
ANNOTATION_START_REVISION: Final = "mpiop.kubeflow.org/start-revision"
ANNOTATION_START_GENERATION: Final = "mpiop.kubeflow.org/start-generation"
ANNOTATION_SSH: Final = "mpiop.kubeflow.org/ssh"
ANNOTATION_SSH_CONFIG: Final = "mpiop.kubeflow.org/ssh-config"
ANNOTATIONS: Final = (
    Annotation(
        ANNOTATION_ADDRESSES,
        "a launcher pod",
        '"" until all workers are Ready, then the addresses of the workers (`controller/plan/addresses.py`).',
    ),
    Annotation(
        ANNOTATION_PUBLISHED_AT,
        "a launcher pod",
        "when its addresses last changed. The operator removes it to make the kubelet read the addresses again.",
    ),
    Annotation(
        ANNOTATION_BEGAN_WITH, "a launcher pod", "the workers with which its current attempt began (`controller/restart/attempt.py`)."
    ),
    Annotation(
        ANNOTATION_RESTART_COUNT,
        "a launcher pod, and on the workers of a job with a restart budget",
        "how many times the job had been restarted before this Pod was created.",
    ),
    Annotation(
        ANNOTATION_SECRET_UID,
        "the ConfigMap",
        "the UID of the SSH Secret. It shows that the Secret exists, because the operator is not allowed to list or watch Secrets.",
    ),
    Annotation(
        ANNOTATION_REJECTIONS,
        "a worker",
        "how many consecutive Pods with its name were rejected by kubelets before it (`controller/observe/rejections.py`).",
    ),
    Annotation(ANNOTATION_LAUNCHER_REVISION, "a launcher Job", "the hash of the MPIJob fields from which the Job was created."),
    Annotation(ANNOTATION_START_REVISION, "a launcher Job", "the hash of the MPIJob fields that took effect at the last start of the Job."),
    Annotation(ANNOTATION_START_GENERATION, "a launcher Job", "the generation of the MPIJob from which `start-revision` was computed."),
    Annotation(ANNOTATION_SSH, "a pod", "the script that `mpirun` calls instead of ssh."),
    Annotation(ANNOTATION_SSH_CONFIG, "a pod", "the text of the ssh_config in the folder of that script."),
)
"""Those that the operator gives to the children of a job; `api.annotations` has those of an MPIJob."""


def launcher_key(job: Key) -> Key:
    """Return the key of the launcher Job of the MPIJob with that key."""
    return Key(job.namespace, launcher_name(job.name))


def selector(job_name: str) -> dict[str, str]:
    """Return the labels that every child of the job has, and that the Service selects its pods by."""
    return {c.LABEL_OPERATOR_NAME: c.OPERATOR_NAME, c.LABEL_JOB_NAME: job_name}


def child_labels(job_name: str) -> dict[str, str]:
    """Return the labels of Service, ConfigMap, Secret and launcher Job."""
    return {c.LABEL_APP: job_name, **selector(job_name)}


def pod_labels(job: MPIJob, role: str, *, worker: int | None = None) -> dict[str, str]:
    """Return the labels of a pod, those of the operator's first versions included.

    Args:
        job: With `run_launcher_as_worker`, the launcher is replica 0 and worker i is replica i + 1 (Kueue's topology code reads it).
        role: `launcher` or `worker`.
        worker: Index of the worker; None for the launcher.
    """
    labels = {
        **selector(job.name),
        c.LABEL_JOB_ROLE: role,
        c.LABEL_OLD_JOB_NAME: job.name,
        c.LABEL_OLD_ROLE: role,
    }
    if worker is not None:
        labels[c.LABEL_REPLICA_INDEX] = str(worker + job.run_launcher_as_worker)
    elif job.run_launcher_as_worker:
        labels[c.LABEL_REPLICA_INDEX] = "0"
    return labels


def owner_reference(job_name: str, uid: str) -> OwnerReference:
    """Return the reference by which the job controls a child; the UID is what counts."""
    return {
        "apiVersion": c.API_VERSION,
        "kind": c.KIND,
        "name": job_name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_id(namespace: str, uid: str) -> ControllerId:
    """Return how the job with that UID is known as a controller."""
    return ControllerId(namespace, c.GROUP, c.KIND, uid)


def child_metadata(job: MPIJob, name: str, labels: Mapping[str, str] | None = None) -> ObjectMeta:
    """Return the metadata of a child.

    Args:
        job: The owner.
        name: Name of the child.
        labels: `child_labels` when None.
    """
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": child_labels(job.name) if labels is None else dict(labels),
        "ownerReferences": [owner_reference(job.name, job.uid)],
    }
