"""Launcher Jobs as a sync reads them: those that there are, and the last state of those that ended and are gone.

Somebody may delete a Job that has ended before a sync has recorded how. The event that tells of the deletion has the Job's last state,
which is kept until the end is recorded. Informers feed it on every replica, so that it outlives a change of the leader.
"""

from collections.abc import Sequence

from mpiop.api.status import parse_status
from mpiop.controller import names, pods
from mpiop.controller.observed import Lister
from mpiop.informers.store import Notification
from mpiop.kube.objects import Key, Object, controller_id, controller_of, key_of, uid_of


class LauncherJobs:
    """A lister of Jobs that knows the last state of launcher Jobs whose end is yet to be recorded."""

    def __init__(self, jobs: Lister, mpijobs: Lister) -> None:
        """Read the stores `jobs` and `mpijobs`."""
        self._jobs = jobs
        self._mpijobs = mpijobs
        self._ended: dict[Key, Object] = {}

    def get(self, key: Key) -> Object | None:
        """Return the Job of that key as it is, or as it was when it was deleted if its MPIJob waits for its end."""
        ended = self._ended.get(key)
        return self._jobs.get(key) or (ended if ended is not None and self._is_awaited(ended) else None)

    def by_index(self, index_name: str, value: str) -> Sequence[Object]:
        """Return the Jobs that there are and that the index files under `value`."""
        return self._jobs.by_index(index_name, value)

    def job_changed(self, notification: Notification) -> None:
        """Keep the last state of a launcher Job that has ended (a handler of the informer of Jobs)."""
        old, is_gone = notification.old, notification.new is None or notification.is_replacement
        if old is not None and is_gone and pods.job_outcome(old) is not None and self._is_awaited(old):
            self._ended[key_of(old)] = old

    def mpijob_changed(self, notification: Notification) -> None:
        """Drop what the MPIJob does not wait for any more (a handler of the informer of MPIJobs)."""
        key = names.launcher_key(notification.key)
        ended = self._ended.get(key)
        if ended is not None and not self._is_awaited(ended):
            del self._ended[key]

    def _is_awaited(self, launcher: Object) -> bool:
        """Tell whether the MPIJob that the launcher Job belongs to is there, and does not say how it ended."""
        reference, key = controller_of(launcher), key_of(launcher)
        owner = Key(key.namespace, reference["name"]) if reference is not None else key
        mpijob = self._mpijobs.get(owner)
        if mpijob is None or key != names.launcher_key(owner):
            return False
        is_ours = controller_id(launcher) == names.controller_id(key.namespace, uid_of(mpijob))
        return is_ours and not parse_status(mpijob.get("status")).is_finished
