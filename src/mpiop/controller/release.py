"""How a suspended launcher Job is let go: when it may be, and what of it follows the MPIJob first.

The pod template of a Job is immutable but for the directives of scheduling (nodeSelector, tolerations, schedulingGates, nodeAffinity,
labels, annotations), and those may change only while the Job is suspended, has no active pod and has no startTime. From Kubernetes 1.36 the
Job controller clears startTime when it suspends; up to 1.35 others have to, through `jobs/status`. Source: KEP-2926,
kubernetes pkg/registry/batch/job/strategy.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from mpiop.api.types import MPIJob
from mpiop.controller import names, pods
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.launcher_job import build_launcher_template, limits, revisions
from mpiop.controller.builders.pod_template import section
from mpiop.controller.merge import merge_patch
from mpiop.controller.revision import DIRECTIVES
from mpiop.kube.objects import Object, annotations_of

_NODE_AFFINITY: Final = "nodeAffinity"
_WHOLE: Final = frozenset({"nodeSelector", _NODE_AFFINITY})


def is_at_rest(launcher: Object | None) -> bool:
    """Tell whether the suspension of a launcher Job has been carried out, or the Job has never run or is not there.

    Let go before that, its pod would run on while the workers that it talked to are replaced.
    """
    if launcher is None:
        return True
    status = launcher.get("status", {})
    return not status.get("active") and (not status.get("startTime") or pods.condition_status(launcher, "Suspended") == "True")


def release_patch(job: MPIJob, launcher: Object, options: BuildOptions) -> tuple[dict[str, Any], str]:
    """Return the body of the next patch that lets a launcher Job at rest go, and the subresource that it is for.

    There is a patch of the status first where a startTime locks a template that has to change.
    """
    have: Mapping[str, Any] = launcher.get("spec", {})
    template = template_patch(build_launcher_template(job, options), section(have, "template"))
    if template and launcher.get("status", {}).get("startTime"):
        return {"status": {"startTime": None}}, "status"
    spec: dict[str, Any] = {name: value for name, value in limits(job).items() if value != have.get(name)}
    if template:
        spec["template"] = template
    metadata: dict[str, Any] = {"labels": names.child_labels(job)}
    noted, wanted = annotations_of(launcher), revisions(job)
    if noted.get(names.ANNOTATION_LAUNCHER_REVISION) == wanted[names.ANNOTATION_LAUNCHER_REVISION]:
        metadata["annotations"] = wanted
    return {"metadata": metadata, "spec": {**spec, "suspend": False}}, ""


def template_patch(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch of the directives, {} when none differs: labels and annotations are merged, the others replaced.

    Annotations of our own say what the containers have been given: one that is not there already would speak of a launcher that the Go
    operator made, and lie.
    """
    spec, noted = section(wanted, "spec"), section(section(have, "metadata"), "annotations")
    annotations = section(wanted["metadata"], "annotations")
    told = {name: text for name, text in annotations.items() if name in noted or not name.startswith(names.ANNOTATION_PREFIX)}
    metadata = {"labels": section(wanted["metadata"], "labels"), "annotations": told}
    replaced: dict[str, Any] = {name: spec.get(name) or ({} if name in _WHOLE else []) for name in DIRECTIVES}
    affinity = section(section(spec, "affinity"), _NODE_AFFINITY)
    if affinity or section(section(section(have, "spec"), "affinity"), _NODE_AFFINITY):
        replaced["affinity"] = {_NODE_AFFINITY: affinity}
    return merge_patch({"metadata": metadata, "spec": replaced}, have, whole=_WHOLE)
