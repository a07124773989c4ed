"""The resources that the operator and the tools use, and the selections of lists and watches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from mpiop.kube.objects import Object


def whole(obj: Object) -> Object:
    """Return all of `obj`."""
    return obj


@dataclass(frozen=True, slots=True)
class Resource:
    """A REST resource: its URL path and the kind of its objects."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, or of the object `name`, or of its `subresource`."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        parts = (self.plural, quote(name, safe=""), subresource)
        return "/".join((root + scope, *filter(None, parts)))


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of a list or watch; it identifies an informer.

    Attributes:
        resource: Whose objects.
        namespace: Where; "" is everywhere.
        label_selector: In the syntax of `kubectl -l`; "" is all.
        field_selector: In the syntax of `kubectl --field-selector`; "" is all.
        metadata_only: Ask for `PartialObjectMetadata`: no spec, no status, no data.
        projection: A `TypedDict` of the fields that are decoded; None means all. An object that does not fit it is `Unreadable`.
        trim: Returns what of a decoded object a store keeps.
    """

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    projection: type[Any] | None = None
    trim: Callable[[Object], Object] = whole

    def __str__(self) -> str:
        """Render for logs: `pods in <namespace> with <selectors>`."""
        where = f" in {self.namespace}" if self.namespace else ""
        selectors = ", ".join(filter(None, (self.label_selector, self.field_selector)))
        return f"{self.resource.plural}{where}" + (f" with {selectors}" if selectors else "")


MPIJOBS = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("", "v1", "events", "Event")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
VOLCANO_POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
COSCHEDULING_POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
WORKLOADS_1_36 = Resource("scheduling.k8s.io", "v1alpha2", "workloads", "Workload")
NATIVE_POD_GROUPS_1_36 = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
WORKLOADS_1_37 = Resource("scheduling.k8s.io", "v1beta1", "workloads", "Workload")
NATIVE_POD_GROUPS_1_37 = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
