"""The last states of workers that were deleted: on which node they ran, and why the cluster took them away.

A pod may be gone before a sync sees its conditions. Informers feed every replica. If an entry is dropped, only a message lacks its cause:
lost workers are found without it (`controller/restart/attempt.py`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mpiop.api import constants as c
from mpiop.informers.store import Notification
from mpiop.kube.objects import ControllerId, Object, controller_id, key_of, labels_of

MOST_JOBS: Final = 256
MOST_WORKERS: Final = 16
"""Of each job; a message names one."""
_NONE: Final[Mapping[str, Object]] = MappingProxyType({})


class DeletedWorkers:
    """Remembers the workers that were deleted last, of the jobs that lost one last."""

    def __init__(self) -> None:
        """Remember none."""
        self._deleted: dict[ControllerId, Mapping[str, Object]] = {}

    def pod_changed(self, notification: Notification) -> None:
        """Remember a worker that was deleted; a sync that misses the Pod must find it here, so this follows the store of Pods."""
        old, is_gone = notification.old, notification.new is None or notification.is_replacement
        controller = controller_id(old) if old is not None and is_gone else None
        if old is None or controller is None or labels_of(old).get(c.LABEL_JOB_ROLE) != c.ROLE_WORKER:
            return
        name, workers = key_of(old).name, dict(self._deleted.pop(controller, _NONE))
        workers.pop(name, None)
        latest = [*workers.items(), (name, old)][-MOST_WORKERS:]
        self._deleted[controller] = dict(latest)
        if len(self._deleted) > MOST_JOBS:
            del self._deleted[next(iter(self._deleted))]

    def of(self, controller: ControllerId) -> Mapping[str, Object]:
        """Return the last states of workers that the controller had, by name."""
        return self._deleted.get(controller, _NONE)
