"""Gang scheduling: which objects make the pods of a job a gang, by scheduler and version of its API, and the writes that keep them so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpiop.api.gang_schedulers import gang_scheduler
from mpiop.api.types import MPIJob
from mpiop.controller.errors import GangApiMissingError
from mpiop.controller.gang.pod_group import PARTS, Part
from mpiop.controller.observe.observed import Lister, Observed
from mpiop.controller.plan.desired import Desired, Presence
from mpiop.controller.plan.diff import Action, Delete, Stage, Step, ensure
from mpiop.kube.objects import Object, is_terminating
from mpiop.kube.resources import Resource

GangApi = tuple[Part, ...]
"""One version of one scheduler's API: the objects of a gang, in the order in which they are made."""


def candidates(scheduler: str) -> Sequence[GangApi]:
    """Return the APIs that serve `scheduler` (a value of `--gang-scheduling`), the best first."""
    return [tuple(PARTS[resource] for resource in api) for api in gang_scheduler(scheduler).apis]


def needs_priorities(api: GangApi) -> bool:
    """Return whether its objects depend on the values of PriorityClasses."""
    return any("minResources" in part.ours for part in api)


@dataclass(slots=True)
class Gang:
    """The state of gang scheduling in this process; `discovery` completes it.

    Attributes:
        scheduler: Value of `--gang-scheduling`; "" is off.
        api: The API that is served; None: none yet.
        waiting: The namespaces whose objects of the API are not cached yet; "" is all.
        refusals: Why the API cannot be used in a namespace; "" is all.
        listers: Stores of its objects.
        priority_classes: Returns the PriorityClasses.
    """

    scheduler: str = ""
    api: GangApi | None = None
    waiting: set[str] = field(default_factory=set[str])
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    listers: dict[Resource, Lister] = field(default_factory=dict[Resource, Lister])
    priority_classes: Callable[[], Sequence[Object]] = tuple

    def missing(self, namespace: str) -> GangApiMissingError | None:
        """Return the error for an API that is needed and cannot be used in `namespace`."""
        if not self.scheduler or (self.api is not None and self.waiting.isdisjoint({"", namespace})):
            return None
        return _missing(self.scheduler, self.refusals.get("") or self.refusals.get(namespace, ""))

    def is_known(self, namespace: str) -> bool:
        """Return whether it is known if an API that is served can be used in `namespace`."""
        return {"", namespace}.isdisjoint(self.waiting - self.refusals.keys())

    def stages(self, job: MPIJob, desired: Desired, observed: Observed) -> tuple[Stage, ...]:
        """Return the writes that give the gang its desired state, each kind after the one that it refers to."""
        if desired.gang is Presence.KEEP or self.api is None or self.missing(job.namespace):
            return ()
        if desired.gang is Presence.DELETE:
            deletes = tuple(Delete(resource, obj) for resource, obj in observed.gang.items() if not is_terminating(obj))
            return (Stage(Step.GANG, deletes),) if deletes else ()
        values = {obj["metadata"].get("name", ""): _value(obj) for obj in self.priority_classes()}
        actions = (_ensure(part, part.build(job, values), observed.gang.get(part.resource)) for part in self.api)
        return tuple(Stage(Step.GANG, (action,)) for action in actions if action is not None)


def _value(priority_class: Mapping[str, Any]) -> int:
    value: int = priority_class.get("value") or 0
    return value


def _ensure(part: Part, desired: Object, current: Object | None) -> Action | None:
    """Return the write that creates an object of the gang, or makes its spec follow the job (`Part`); None if nothing differs."""
    if current is None:
        return ensure(part.resource, desired, None)
    spec = desired.get("spec", {})
    followed: dict[str, Any] = {name: spec.get(name) for name in part.ours}
    followed |= {name: spec[name] for name in part.shared if name in spec}
    return ensure(part.resource, {"metadata": desired["metadata"], "spec": followed}, current)


def _missing(scheduler: str, refusal: str) -> GangApiMissingError:
    resource = candidates(scheduler)[-1][-1].resource
    begin, end = f"gang scheduling by {scheduler!r} is on, but", "or start the operator without --gang-scheduling"
    if refusal:
        return GangApiMissingError(resource.kind, f"{begin} its API cannot be used: {refusal}: give the operator the right to, {end}")
    advice = gang_scheduler(scheduler).advice.format(name=scheduler)
    served = f"the API server does not serve {resource.plural} of {resource.group}"
    return GangApiMissingError(resource.kind, f"{begin} {served}: {advice}, {end}")
