"""When the launcher Job is suspended and resumed, and which of its fields follow the MPIJob before it is resumed.

A launcher Job is suspended with its MPIJob, and also while a restart replaces workers. `diff` determines in which order suspension, workers
and resumption are written.

The pod template of a Job is immutable but for the directives of scheduling (nodeSelector, tolerations, schedulingGates, nodeAffinity,
labels, annotations), and those may change only while the Job is suspended, has no active pod and has no startTime. From Kubernetes 1.36 the
Job controller clears startTime when it suspends; up to 1.35 others have to, through `jobs/status`. Source: KEP-2926,
kubernetes pkg/registry/batch/job/strategy.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_template, revisions
from mpiop.controller.objects.pod_template import section
from mpiop.controller.objects.revision import DIRECTIVES
from mpiop.controller.observe.observed import launcher_template
from mpiop.controller.plan.merge_patch import merge_patch
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.restart.plan import keeps_workers, may_resume
from mpiop.controller.restart.policy import launcher_limits
from mpiop.kube.objects import Object, annotations_of

_NODE_AFFINITY: Final = "nodeAffinity"
_REPLACED_WHOLE: Final = frozenset({"nodeSelector", _NODE_AFFINITY})


def should_suspend_launcher(attempt: LauncherAttempt) -> bool:
    """Return whether the launcher Job should be suspended; once running it is not suspended again for a replaced worker."""
    job, observed = attempt.job, attempt.observed
    if job.is_suspended:
        return True
    if attempt.is_restarting:
        return not (observed.is_launcher_suspended and may_resume(attempt))
    lacks_ready_workers = job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY and not attempt.has_ready_workers
    return observed.is_launcher_suspended and (observed.awaits_old_gang or lacks_ready_workers)


def unsuspend_patch(job: MPIJob, launcher: Object, options: BuildOptions) -> tuple[dict[str, Any], str]:
    """Return the next patch on the way to resuming a suspended launcher Job, and the subresource that it is for.

    If the template has to change and a startTime locks it, the first patch clears the startTime in the status.
    """
    current: Mapping[str, Any] = launcher.get("spec", {})
    template = template_patch(build_launcher_template(job, options), launcher_template(launcher))
    if template and launcher.get("status", {}).get("startTime"):
        return {"status": {"startTime": None}}, "status"
    spec: dict[str, Any] = {name: value for name, value in launcher_limits(job).items() if value != current.get(name)}
    if template:
        spec["template"] = template
    metadata: dict[str, Any] = {"labels": names.child_labels(job.name)}
    recorded, desired = annotations_of(launcher), dict(revisions(job))
    if keeps_workers(job, launcher):  # they are still those of the spec with which the job began
        del desired[names.ANNOTATION_START_REVISION], desired[names.ANNOTATION_START_GENERATION]
    # Otherwise the containers are those of an older spec, which UpdatePending continues to report.
    if recorded.get(names.ANNOTATION_LAUNCHER_REVISION) == desired[names.ANNOTATION_LAUNCHER_REVISION]:
        metadata["annotations"] = desired
    return {"metadata": metadata, "spec": {**spec, "suspend": False}}, ""


def template_patch(desired: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch of the scheduling directives, {} if none differs: labels and annotations are merged, the others replaced.

    Our own annotations describe what the containers were given. They are only updated, never added, because a launcher of the Go operator
    does not have them. The restart-count annotation is the exception: it is always set.
    """
    spec, recorded = section(desired, "spec"), section(section(current, "metadata"), "annotations")
    annotations = section(desired["metadata"], "annotations")
    described = {name: text for name, text in annotations.items() if _may_be_added(name) or name in recorded}
    metadata = {"labels": section(desired["metadata"], "labels"), "annotations": described}
    replaced: dict[str, Any] = {name: spec.get(name) or ({} if name in _REPLACED_WHOLE else []) for name in DIRECTIVES}
    affinity = section(section(spec, "affinity"), _NODE_AFFINITY)
    if affinity or section(section(section(current, "spec"), "affinity"), _NODE_AFFINITY):
        replaced["affinity"] = {_NODE_AFFINITY: affinity}
    return merge_patch({"metadata": metadata, "spec": replaced}, current, whole=_REPLACED_WHOLE)


def _may_be_added(annotation: str) -> bool:
    return annotation == names.ANNOTATION_RESTART_COUNT or not annotation.startswith(names.ANNOTATION_PREFIX)
