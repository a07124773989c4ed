"""The keys that wait for a worker, and which of them is next."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mpiop.shares import Shares

KeyT = TypeVar("KeyT", bound=Hashable)


class WaitingKeys(Generic[KeyT]):
    """Hands out keys round robin by namespace, within the limit of `Shares`; within a namespace, first in, first out."""

    def __init__(self, namespace_of: Callable[[KeyT], Hashable], shares: Shares) -> None:
        """Start empty."""
        self._namespace_of = namespace_of
        self._shares = shares
        # The namespace whose turn is next comes first.
        self._waiting: OrderedDict[Hashable, deque[KeyT]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        """Return how many keys wait."""
        return self._length

    def append(self, key: KeyT) -> None:
        """Add a key, which must not be among them."""
        self._waiting.setdefault(self._namespace_of(key), deque()).append(key)
        self._length += 1

    def has_next(self) -> bool:
        """Return whether a key may be taken."""
        return any(map(self._shares.has_place, self._waiting))

    def take(self) -> KeyT:
        """Remove and return the next key that may be taken: there must be one. Its namespace has a place until `release`."""
        # A short search: it passes only namespaces whose keys are being processed, because the caller has a worker left.
        namespace = next(filter(self._shares.has_place, self._waiting))
        keys = self._waiting.pop(namespace)
        key = keys.popleft()
        if keys:
            self._waiting[namespace] = keys
        self._length -= 1
        self._shares.take(namespace)
        return key

    def release(self, key: KeyT) -> None:
        """Give back the place of `key`."""
        self._shares.release(self._namespace_of(key))
