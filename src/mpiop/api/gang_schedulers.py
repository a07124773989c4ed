"""The gang schedulers (`--gang-scheduling`): one row for each, with everything that operator and tools know about it except its objects.

The builders of the objects are rows of `mpiop.controller.gang.pod_group`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mpiop.kube import resources
from mpiop.kube.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class GangScheduler:
    """A gang scheduler.

    Attributes:
        name: Value of `--gang-scheduling`; the row "" is for all other values, which are names of schedulers.
        title: Its name for people.
        apis: The versions of its API, the best first; of each, the kinds of a gang's objects, in the order in which they are created.
        pod_annotation: Annotation of a pod that names its PodGroup; "" if another field does.
        pod_label: Label of a pod that names its PodGroup; "" if another field does.
        is_native: Whether `spec.schedulingGroup` names it, and the pod stays with the scheduler that its template names.
        advice: What to do if the API server serves none of `apis`; with `{name}`, the value of the flag.
    """

    name: str
    title: str
    apis: tuple[tuple[Resource, ...], ...]
    pod_annotation: str = ""
    pod_label: str = ""
    is_native: bool = False
    advice: str


_VOLCANO: Final = GangScheduler(
    name="volcano",
    title="Volcano",
    apis=((resources.VOLCANO_POD_GROUPS,),),
    pod_annotation="scheduling.k8s.io/group-name",
    advice="install Volcano",
)
_NATIVE: Final = GangScheduler(
    name="kubernetes",
    title="Kubernetes",
    apis=(
        (resources.WORKLOADS_1_37, resources.NATIVE_POD_GROUPS_1_37),
        (resources.WORKLOADS_1_36, resources.NATIVE_POD_GROUPS_1_36),
    ),
    is_native=True,
    advice="Kubernetes 1.36 needs the feature gates GenericWorkload and GangScheduling and --runtime-config=scheduling.k8s.io/"
    "v1alpha2=true, 1.37 the gates and scheduling.k8s.io/v1beta1=true",
)
_COSCHEDULING: Final = GangScheduler(
    name="",
    title="coscheduling",
    apis=((resources.COSCHEDULING_POD_GROUPS,),),
    pod_label="scheduling.x-k8s.io/pod-group",
    advice="install the coscheduling plugin of scheduler-plugins under the name {name!r}",
)

GANG_SCHEDULERS: Final[Mapping[str, GangScheduler]] = {row.name: row for row in (_VOLCANO, _NATIVE, _COSCHEDULING)}


def gang_scheduler(flag: str) -> GangScheduler:
    """Return the row of a value of `--gang-scheduling`."""
    return GANG_SCHEDULERS.get(flag, _COSCHEDULING)
