"""Detects changes to cached objects."""

import json
from hashlib import blake2b

from mpiop.informers.store import Notification
from mpiop.kube.objects import Key, Object


class MutationError(AssertionError):
    """A cached object was changed."""


class MutationDetector:
    """Remembers the original content of each cached object."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[Object, bytes]] = {}
        self._findings: list[str] = []

    def observe(self, notification: Notification) -> None:
        """Check the object that leaves the store (`verify` reports a change), and remember the one that enters it."""
        self._check(notification.key)
        self._seen.pop(notification.key, None)
        if notification.new is not None:
            self._seen[notification.key] = (notification.new, _fingerprint(notification.new))

    def verify(self) -> None:
        """Check every object.

        Raises:
            MutationError: One was changed, now or ever since.
        """
        for key in self._seen:
            self._check(key)
        if self._findings:
            raise MutationError("\n".join(dict.fromkeys(self._findings)))

    def _check(self, key: Key) -> None:
        obj, fingerprint = self._seen.get(key, (None, b""))
        if obj is not None and _fingerprint(obj) != fingerprint:
            self._findings.append(f"stored object {key} was changed in place; copy what comes out of a store. It is now {json.dumps(obj)}")


def _fingerprint(obj: Object) -> bytes:
    return blake2b(json.dumps(obj, sort_keys=True, default=repr).encode(), digest_size=16).digest()
