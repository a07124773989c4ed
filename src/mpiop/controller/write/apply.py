"""Carrying writes out: one at a time where order matters, many at a time where it does not, each safe under a second leader."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mpiop.api import constants as c
from mpiop.controller import names
from mpiop.controller.observe.consistency import Consistency
from mpiop.controller.plan.diff import Action, Create, Delete, Patch
from mpiop.controller.plan.merge_patch import merge_patch
from mpiop.controller.status.stalled import FailedWrite, ResourceExistsError
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import ControllerId, Key, Object, controller_id, controller_of, is_terminating, resource_version_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, SECRETS, Resource


class Writer(Protocol):
    """The part of the client that writes, and reads live where a cache will not do."""

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """Return the object, or its kind and metadata alone, as the API server has it now."""
        ...

    async def create(self, resource: Resource, body: Object, *, is_dry_run: bool = False, metadata_only: bool = False) -> Object:
        """Create the object, or ask whether that is possible."""
        ...

    async def patch(self, resource: Resource, key: Key, body: Any, *, subresource: str = "") -> Object:
        """Merge `body`, which carries the preconditions, into the object."""
        ...

    async def delete(self, resource: Resource, key: Key, *, uid: str, propagation: str = "Background") -> Object | None:
        """Delete the object if its UID is `uid`."""
        ...


class PredecessorError(Exception):
    """A child of a deleted job of the same name is still on its way out; the garbage collector takes it away."""

    def __init__(self, resource: Resource, key: Key) -> None:
        """Say what is waited for."""
        super().__init__(f"{resource.kind} {key} of a former owner is still being deleted")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose children are written: the job by key and UID."""

    key: Key
    uid: str

    @property
    def id(self) -> ControllerId:
        """Return how its children name it."""
        return names.controller_id(self.key.namespace, self.uid)


@dataclass(frozen=True, slots=True)
class Applier:
    """Carries out actions for a job.

    Attributes:
        client: Calls off what is to be written when we may no longer lead, since a lease is not a lock.
    """

    client: Writer
    consistency: Consistency

    async def apply(self, owner: Owner, actions: Sequence[Action]) -> list[FailedWrite]:
        """Carry out `actions` and return those that failed.

        Creates go out in growing batches (1, 2, 4, …). The batch with the first refused one is the last: a quota is not asked a thousand
        times. Other writes always go out, so that one refused write does not stop the others. Source: kubernetes job controller (slow
        start), invariant E56.

        Raises:
            ExceptionGroup: What is no failed write, such as a defect of ours; the writes beside it were cancelled, and none is under way.
        """
        creates = [action for action in actions if isinstance(action, Create)]
        others = [action for action in actions if not isinstance(action, Create)]
        failed = await self._all(owner, others)
        return [*failed, *await self._create_slowly(owner, creates)]

    async def _create_slowly(self, owner: Owner, creates: Sequence[Create]) -> list[FailedWrite]:
        size = 1
        while creates:
            batch, creates = creates[:size], creates[size:]
            if refused := await self._all(owner, batch):
                return refused
            size *= 2
        return []

    async def perform(self, owner: Owner, action: Action) -> Object | None:
        """Carry out one action and return kind and metadata, at least, as they then are; None where nothing is there.

        A patch of what has changed meanwhile fails, and no sync of the owner begins before the cache shows the change: what was refused
        is computed anew, not sent again. Source: invariant T4.
        """
        try:
            result = await self._write(owner, action)
        except StatusError as error:
            if error.is_conflict and isinstance(action, Patch):
                await self._note_change(owner, action)
            raise
        self.consistency.wrote(owner.key, owner.uid, action.resource, result)
        return result

    async def _all(self, owner: Owner, actions: Sequence[Action]) -> list[FailedWrite]:
        async with asyncio.TaskGroup() as writes:
            tasks = [writes.create_task(self._try(owner, action)) for action in actions]
        return [failed for task in tasks if (failed := task.result()) is not None]

    async def _try(self, owner: Owner, action: Action) -> FailedWrite | None:
        try:
            await self.perform(owner, action)
        except (KubeError, ResourceExistsError, PredecessorError) as error:
            return FailedWrite(action.resource.kind, error, is_create=isinstance(action, Create))
        return None

    async def _note_change(self, owner: Owner, action: Patch) -> None:
        with contextlib.suppress(KubeError):  # the conflict is what there is to tell; without this answer only the watch says what changed
            live = await self.client.get(action.resource, action.key, metadata_only=True)
            self.consistency.wrote(owner.key, owner.uid, action.resource, live)

    async def _write(self, owner: Owner, action: Action) -> Object | None:
        match action:
            case Create():
                return await self._create(owner, action)
            case Patch():
                return await self.client.patch(action.resource, action.key, _with_preconditions(action), subresource=action.subresource)
            case Delete():
                return await self._delete(action)

    async def _create(self, owner: Owner, action: Create) -> Object:
        try:
            return await self.client.create(action.resource, action.build(), metadata_only=True)
        except StatusError as error:
            if not error.is_already_exists:
                raise
        return await self.find_ours(owner, action.resource, action.key)

    async def find_ours(self, owner: Owner, resource: Resource, key: Key) -> Object:
        """Return what `read_ours` does; what the Go operator made gets our label, so that our watches show it.

        Raises:
            KubeError, PredecessorError, ResourceExistsError: See `read_ours`.
        """
        have = await self.read_ours(owner, resource, key)
        if resource is not SECRETS and (body := merge_patch({"metadata": {"labels": {c.LABEL_OPERATOR_NAME: c.OPERATOR_NAME}}}, have)):
            return await self.client.patch(resource, key, _with_preconditions(Patch(resource, have, body)))
        return have

    async def read_ours(self, owner: Owner, resource: Resource, key: Key) -> Object:
        """Return the object as the API server has it now, if it is the job's.

        Of a launcher Job that is all; of the others, whose keys and data are nobody's business, kind and metadata.

        Raises:
            StatusError: There is none (404), or the server does not answer well.
            PredecessorError: It belongs to a former job of the same name, or is on its way out.
            ResourceExistsError: It is not the job's.
        """
        have = await self.client.get(resource, key, metadata_only=resource is not JOBS)
        if controller_id(have) != owner.id:
            raise PredecessorError(resource, key) if _is_predecessors(have, owner) else ResourceExistsError(resource.kind, key.name)
        if is_terminating(have):
            raise PredecessorError(resource, key)
        return have

    async def check_namespace(self, namespace: str) -> None:
        """Return if `namespace` is there to stay, which a creation that is not carried out tells: there is no right to read namespaces.

        Raises:
            StatusError: It is being deleted (`is_terminating_namespace`), or the server does not answer well.
        """
        probe: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mpiop-dry-run", "namespace": namespace}}
        try:
            await self.client.create(CONFIG_MAPS, probe, is_dry_run=True, metadata_only=True)
        except StatusError as error:
            # A policy may refuse such an object in a namespace that stays.
            if error.is_terminating_namespace or not (error.is_forbidden or error.is_invalid or error.is_already_exists):
                raise

    async def _delete(self, action: Delete) -> Object | None:
        try:
            # A launcher Job outlives its pods, so that they are counted as long as they run.
            propagation = "Foreground" if action.resource is JOBS else "Background"
            return await self.client.delete(action.resource, action.key, uid=uid_of(action.observed), propagation=propagation)
        except StatusError as error:
            if error.is_not_found:
                return None
            if not error.is_conflict:
                raise
            return await self._successor(action, error)

    async def _successor(self, action: Delete, refusal: StatusError) -> Object | None:
        """Return what has the name of an object that could not be deleted: if it is another one, the object is gone.

        Raises:
            StatusError: The object is there and may not be deleted, or the server does not answer well.
        """
        try:
            live = await self.client.get(action.resource, action.key, metadata_only=True)
        except StatusError as error:
            if error.is_not_found:
                return None
            raise
        if uid_of(live) == uid_of(action.observed):
            raise refusal
        return live


def _is_predecessors(obj: Object, owner: Owner) -> bool:
    """Return whether `obj` belongs to another job that had the name of `owner`."""
    reference, controller = controller_of(obj), controller_id(obj)
    return reference is not None and reference["name"] == owner.key.name and controller == owner.id._replace(uid=reference["uid"])


def _with_preconditions(action: Patch) -> dict[str, Any]:
    """Return the body with what makes a late or doubled patch fail: the UID and version that were observed."""
    preconditions = {"uid": uid_of(action.observed)}
    if not action.is_for_any_version:
        preconditions["resourceVersion"] = resource_version_of(action.observed)
    return {**action.body, "metadata": {**action.body.get("metadata", {}), **preconditions}}
