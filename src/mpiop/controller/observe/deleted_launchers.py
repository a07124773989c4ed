"""Launcher Jobs as a sync reads them: the existing ones, and the last state of deleted ones whose end is not recorded yet.

A finished Job may be deleted before a sync records how it ended. The deletion event carries its last state, which is kept until the end
is recorded. Informers feed every replica, so this survives a change of the leader.
"""

from collections.abc import Mapping, Sequence

from mpiop.api.status import parse_status
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Lister
from mpiop.informers.store import Notification
from mpiop.kube.objects import Key, Object, Unreadable, controller_id, controller_of, key_of, uid_of


class LauncherJobs:
    """A lister of Jobs that also knows deleted launcher Jobs whose end is not recorded yet."""

    def __init__(self, jobs: Lister, mpijobs: Lister) -> None:
        """Read the stores `jobs` and `mpijobs`."""
        self._jobs = jobs
        self._mpijobs = mpijobs
        self._ended: dict[Key, Object] = {}

    def get(self, key: Key) -> Object | None:
        """Return the Job of that key, or its last state if it was deleted and the status of its MPIJob does not show its end yet."""
        ended = self._ended.get(key)
        return self._jobs.get(key) or (ended if ended is not None and self._is_awaited(ended) else None)

    def by_index(self, index_name: str, value: str) -> Sequence[Object]:
        """Return the existing Jobs that the index files under `value`."""
        return self._jobs.by_index(index_name, value)

    @property
    def unreadable(self) -> Mapping[Key, Unreadable]:
        """Return the existing Jobs that cannot be decoded."""
        return self._jobs.unreadable

    def job_changed(self, notification: Notification) -> None:
        """Keep the last state of a launcher Job that has ended; a sync that misses the Job must find it here, so this follows the store."""
        old, is_gone = notification.old, notification.new is None or notification.is_replacement
        if old is not None and is_gone and pods.job_outcome(old) is not None and self._is_awaited(old):
            self._ended[key_of(old)] = old

    def mpijob_changed(self, notification: Notification) -> None:
        """Forget a Job whose end is recorded (a handler of the informer of MPIJobs)."""
        key = names.launcher_key(notification.key)
        ended = self._ended.get(key)
        if ended is not None and not self._is_awaited(ended):
            del self._ended[key]

    def _is_awaited(self, launcher: Object) -> bool:
        """Return whether the MPIJob of the launcher Job exists, and its status does not show the end of the launcher yet."""
        reference, key = controller_of(launcher), key_of(launcher)
        owner = Key(key.namespace, reference["name"]) if reference is not None else key
        if owner in self._mpijobs.unreadable:
            return True
        mpijob = self._mpijobs.get(owner)
        if mpijob is None or key != names.launcher_key(owner):
            return False
        is_ours = controller_id(launcher) == names.controller_id(key.namespace, uid_of(mpijob))
        return is_ours and not parse_status(mpijob.get("status")).is_finished
