"""Carries out the writes of a sync. Each write is safe even if another replica leads by now.

Patches and deletes have the observed UID as precondition, most patches its resourceVersion too. Names of children are fixed, so a second
create fails with AlreadyExists; the existing object is then used if it belongs to the job. The resourceVersion of each answer is kept: no
sync of the job starts before the caches show it. Rejected: expectations, which each error path would have to lower (docs/adr/0006).
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.errors import DampedWriteError, PredecessorError, ResourceExistsError, WriteError
from mpiop.controller.observe.consistency import Consistency
from mpiop.controller.plan.diff import Action, Create, Delete, Patch
from mpiop.controller.plan.merge_patch import merge_patch
from mpiop.controller.status.refusals import FailedWrite
from mpiop.controller.write.contention import Contended, Contention
from mpiop.controller.write.field_managers import WithManagedFields, Writers
from mpiop.controller.write.writer import Writer
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import ControllerId, Key, Object, controller_id, controller_of, is_terminating, resource_version_of, uid_of
from mpiop.kube.request import ignore
from mpiop.kube.resources import CONFIG_MAPS, JOBS, SECRETS, Resource

AT_ONCE: Final = 32
"""Writes of a job that are built and sent at a time, as many as the client sends: more bodies would only wait in memory."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The job whose children are written."""

    key: Key
    uid: str

    @property
    def id(self) -> ControllerId:
        """Return the controller ID that its children carry."""
        return names.controller_id(self.key.namespace, self.uid)


def owner_of(job: MPIJob) -> Owner:
    """Return the job as an owner."""
    return Owner(job.key, job.uid)


@dataclass(slots=True)
class Written:
    """What came of some writes.

    Attributes:
        failed: Those that failed.
        warnings: What the API server warned of as it created objects, each once: a thousand Pods have the same.
    """

    failed: list[FailedWrite] = field(default_factory=list[FailedWrite])
    warnings: dict[str, None] = field(default_factory=dict[str, None])

    def warn(self, kind: str, text: str) -> None:
        """Note a warning about an object of that kind."""
        self.warnings[f"{kind}: {text}"] = None

    def add(self, other: "Written") -> None:
        """Add what came of further writes."""
        self.failed += other.failed
        self.warnings |= other.warnings


def _count_nothing(_resource: str, _reason: str) -> None:
    """Count nothing."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Carries out actions for a job.

    Attributes:
        client: Refuses writes when this replica may no longer lead, since a lease is not a lock.
        contention: Delays writes that somebody undoes each time.
        count_failure: Called with the resource and the reason of each failed write.
    """

    client: Writer
    consistency: Consistency
    contention: Contention
    count_failure: Callable[[str, str], None] = _count_nothing

    async def apply(self, owner: Owner, actions: Sequence[Action]) -> Written:
        """Carry out `actions`.

        Creates are sent in growing batches (1, 2, 4, …), and a batch with a failure is the last one, so that an exceeded quota is not hit a
        thousand times. Other writes are always sent: one refused write does not stop the others. Source: kubernetes job controller (slow
        start), invariant E56.

        A change or delete that is delayed, because somebody undoes it each time, has not failed, and nothing waits for it.

        Raises:
            ExceptionGroup: An unexpected error; the concurrent writes were cancelled and have ended.
        """
        creates = [action for action in actions if isinstance(action, Create)]
        others = [action for action in actions if not isinstance(action, Create)]
        written, size = await self._all(owner, others), 1
        while creates:
            batch, creates = creates[:size], creates[size:]
            created = await self._all(owner, batch)
            written.add(created)
            if not all(isinstance(write.error, DampedWriteError) for write in created.failed):
                break
            size *= 2
        return written

    async def perform(self, owner: Owner, action: Action, warn: Callable[[str], None] = ignore) -> Object | None:
        """Carry out one action and return at least kind and metadata of the result; None if the object is gone.

        `warn` is called with each warning of the API server about an object that it creates.

        After a conflict no sync of the owner starts before the cache shows the newer object: the patch is computed again, not resent.
        Source: invariant T4.

        Raises:
            DampedWriteError: It is not due yet, because somebody undoes it each time.
            KubeError, PredecessorError, ResourceExistsError: It failed.
        """
        contended = self.contention.check(owner.key, owner.uid, action)
        if contended is not None and contended.is_unexplained:
            await self._explain(owner, contended, action)
        try:
            result = await self._write(owner, action, warn)
        except KubeError as error:
            self.count_failure(action.resource.plural, _reason(error))
            if isinstance(error, StatusError) and error.is_conflict and isinstance(action, Patch):
                await self._note_change(owner, action)
            raise
        self.consistency.wrote(owner.key, owner.uid, action.resource, result)
        return result

    def _client(self, owner: Owner) -> Writer:
        return self.client.of_flow(owner.key)

    async def _explain(self, owner: Owner, contended: Contended, action: Action) -> None:
        try:
            live = await self._client(owner).get(action.resource, action.key, projection=WithManagedFields)
        except KubeError:  # it is not asked for again
            contended.writers = Writers()
        else:
            self.contention.explain(contended, live)

    async def _all(self, owner: Owner, actions: Sequence[Action]) -> Written:
        """Carry out `actions` side by side."""
        room, written = asyncio.Semaphore(AT_ONCE), Written()
        async with asyncio.TaskGroup() as writes:
            tasks = [writes.create_task(self._try(owner, action, room, written.warn)) for action in actions]
        written.failed += [failed for task in tasks if (failed := task.result()) is not None]
        return written

    async def _try(self, owner: Owner, action: Action, room: asyncio.Semaphore, warn: Callable[[str, str], None]) -> FailedWrite | None:
        try:
            async with room:
                await self.perform(owner, action, partial(warn, action.resource.kind))
        except DampedWriteError as error:
            return FailedWrite(action.resource.kind, error) if isinstance(action, Create) else None
        except (KubeError, WriteError) as error:
            return FailedWrite(action.resource.kind, error, is_create=isinstance(action, Create))
        return None

    async def _note_change(self, owner: Owner, action: Patch) -> None:
        # The caller raises the conflict, so an error here is dropped: then the watch brings the newer version.
        with contextlib.suppress(KubeError):
            live = await self._client(owner).get(action.resource, action.key, metadata_only=True)
            self.consistency.wrote(owner.key, owner.uid, action.resource, live)

    async def _write(self, owner: Owner, action: Action, warn: Callable[[str], None]) -> Object | None:
        if isinstance(action, Create):
            return await self._create(owner, action, warn)
        if isinstance(action, Patch):
            body, subresource = _with_preconditions(action), action.subresource
            result: Object | None = await self._client(owner).patch(
                action.resource, action.key, body, subresource=subresource, metadata_only=True
            )
        else:
            result = await self._delete(owner, action)
        self.contention.wrote(owner.key, owner.uid, action)
        return result

    async def _create(self, owner: Owner, action: Create, warn: Callable[[str], None]) -> Object:
        try:
            created = await self._client(owner).create(action.resource, action.build(), metadata_only=True, warn=warn)
        except StatusError as error:
            if not error.is_already_exists:
                raise
            return await self.find_ours(owner, action.resource, action.key)
        self.contention.wrote(owner.key, owner.uid, action)
        return created

    async def find_ours(self, owner: Owner, resource: Resource, key: Key) -> Object:
        """Return what `read_ours` does; an object made by the Go operator gets our label, so that our watches show it.

        Raises:
            KubeError, PredecessorError, ResourceExistsError: See `read_ours`.
            DampedWriteError: Somebody takes the label away each time.
        """
        current = await self.read_ours(owner, resource, key)
        if resource is not SECRETS and (body := merge_patch({"metadata": {"labels": {c.LABEL_OPERATOR_NAME: c.OPERATOR_NAME}}}, current)):
            patched = await self.perform(owner, Patch(resource, current, body))
            return current if patched is None else {**current, "metadata": patched["metadata"]}
        return current

    async def read_ours(self, owner: Owner, resource: Resource, key: Key) -> Object:
        """Return the live object if it belongs to the job: a launcher Job whole, others as kind and metadata, without keys and data.

        Raises:
            StatusError: It does not exist (404), or the request failed.
            PredecessorError: It belongs to a deleted job of the same name, or is terminating.
            ResourceExistsError: It does not belong to the job.
        """
        current = await self._client(owner).get(resource, key, metadata_only=resource is not JOBS)
        if controller_id(current) != owner.id:
            raise PredecessorError(resource, key) if _is_predecessors(current, owner) else ResourceExistsError(resource.kind, key.name)
        if is_terminating(current):
            raise PredecessorError(resource, key)
        return current

    async def check_namespace(self, owner: Owner) -> None:
        """Return if the namespace is not being deleted. A dry-run create answers that without the right to read namespaces.

        Raises:
            StatusError: It is being deleted (`is_terminating_namespace`), or the server does not answer well.
        """
        probe: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mpiop-dry-run", "namespace": owner.key.namespace}}
        try:
            await self._client(owner).create(CONFIG_MAPS, probe, is_dry_run=True, metadata_only=True)
        except StatusError as error:
            # A policy may refuse such an object in a healthy namespace.
            if error.is_terminating_namespace or not (error.is_forbidden or error.is_invalid or error.is_already_exists):
                raise

    async def _delete(self, owner: Owner, action: Delete) -> Object | None:
        try:
            # In the foreground, the launcher Job outlives its pods, so they are counted while they run.
            propagation = "Foreground" if action.resource is JOBS else "Background"
            uid = uid_of(action.observed)
            return await self._client(owner).delete(
                action.resource, action.key, uid=uid, propagation=propagation, is_forced=action.is_forced
            )
        except StatusError as error:
            if error.is_not_found:
                return None
            if not error.is_conflict:
                raise
            return await self._successor(owner, action, error)

    async def _successor(self, owner: Owner, action: Delete, refusal: StatusError) -> Object | None:
        """Return the object that has the name of one whose delete was refused; if it is another one, ours is gone.

        Raises:
            StatusError: The object still exists and may not be deleted, or the request failed.
        """
        try:
            live = await self._client(owner).get(action.resource, action.key, metadata_only=True)
        except StatusError as error:
            if error.is_not_found:
                return None
            raise
        if uid_of(live) == uid_of(action.observed):
            raise refusal
        return live


def _reason(error: KubeError) -> str:
    """Return the API server's reason, or the code of an answer without one: some webhooks put a whole sentence there."""
    if not isinstance(error, StatusError):
        return "NoAnswer"
    return error.reason if error.reason and " " not in error.reason else str(error.code)


def _is_predecessors(obj: Object, owner: Owner) -> bool:
    """Return whether `obj` belongs to a deleted job that had the name of `owner`."""
    reference, controller = controller_of(obj), controller_id(obj)
    return reference is not None and reference["name"] == owner.key.name and controller == owner.id._replace(uid=reference["uid"])


def _with_preconditions(action: Patch) -> dict[str, Any]:
    """Return the body with the observed UID and version, which make a late or repeated patch fail."""
    preconditions = {"uid": uid_of(action.observed)}
    if not action.is_for_any_version:
        preconditions["resourceVersion"] = resource_version_of(action.observed)
    return {**action.body, "metadata": {**action.body.get("metadata", {}), **preconditions}}
