"""Children that the Go operator made for a job that it finished: our watches do not show them, so they are read live to be deleted."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller.errors import PredecessorError, ResourceExistsError
from mpiop.controller.observe.observed import Observed
from mpiop.controller.write.apply import Applier, owner_of
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import CONFIG_MAPS, JOBS, SERVICES, Resource

_ALWAYS_OURS: Final = frozenset({SERVICES, CONFIG_MAPS, JOBS})
"""What the operator may always read; the right to the objects of gang scheduling may be missing in a namespace."""


async def with_unlabelled(job: MPIJob, observed: Observed, applier: Applier, gang: Iterable[Resource]) -> Observed:
    """Return `observed`, completed with live children if the Go operator finished the job.

    Args:
        job: The job, which has ended.
        observed: What the caches show of it.
        applier: Reads.
        gang: Resources of gang scheduling.

    Raises:
        KubeError: A request failed.
    """
    if not job.status.is_finished_by_go_operator:
        return observed

    async def found(current: Object | None, resource: Resource, name: str) -> Object | None:
        return current or await _found(job, resource, name, applier)

    return replace(
        observed,
        service=await found(observed.service, SERVICES, job.service_name),
        config_map=await found(observed.config_map, CONFIG_MAPS, job.config_map_name),
        gang={resource: obj for resource in gang if (obj := await found(observed.gang.get(resource), resource, job.pod_group_name))},
        launcher=await found(observed.launcher, JOBS, job.launcher_name),
    )


async def _found(job: MPIJob, resource: Resource, name: str, applier: Applier) -> Object | None:
    try:
        return await applier.read_ours(owner_of(job), resource, Key(job.namespace, name))
    except (ResourceExistsError, PredecessorError):
        return None
    except StatusError as error:
        if error.is_not_found or (error.is_forbidden and resource not in _ALWAYS_OURS):
            return None
        raise
