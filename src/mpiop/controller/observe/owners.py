"""Which job an object belongs to."""

from typing import Final

from mpiop.api import constants as c
from mpiop.kube.objects import Key, Object, Unreadable, controller_id, controller_of, key_of, labels_of

_LONGEST_PREFIX: Final = 58
"""Characters of a generated name that Kubernetes keeps; five that it chooses follow them."""


def job_of(obj: Object) -> Key | None:
    """Return the key of the job that `obj` is or belongs to: by its controller or, for a launcher pod, by its label."""
    if obj.get("kind") == c.KIND:
        return key_of(obj)
    reference, controller = controller_of(obj), controller_id(obj)
    is_child = controller is not None and (controller.group, controller.kind) == (c.GROUP, c.KIND)
    name = reference["name"] if reference is not None and is_child else labels_of(obj).get(c.LABEL_JOB_NAME)
    return None if name is None else Key(obj["metadata"].get("namespace", ""), name)


def may_belong_to(job: Key, unreadable: Unreadable) -> bool:
    """Return whether an object that cannot be decoded belongs to the job, or may do so by its name if nothing else can be read."""
    owner = job_of(unreadable.object)
    if owner is not None:
        return owner == job
    namespace, name = key_of(unreadable.object)
    return namespace == job.namespace and f"{name}-".startswith(f"{job.name}-"[:_LONGEST_PREFIX])
