"""A limit that no namespace can use up."""

import math
from collections import Counter
from collections.abc import Hashable
from typing import Final

RESERVED: Final = 4
"""Places beyond the limit."""


class Shares:
    """Counts what is under way: up to a limit, and up to `RESERVED` more, each of a namespace that has nothing under way.

    So one namespace may use the whole limit if no other needs it, and can never delay the first task of another one.
    """

    def __init__(self, limit: float = math.inf) -> None:
        """Start with nothing under way."""
        self._limit = limit
        self._taken: Counter[Hashable] = Counter()

    def has_place(self, namespace: Hashable) -> bool:
        """Return whether another task of `namespace` may begin."""
        total = self._taken.total()
        return total < self._limit or (total < self._limit + RESERVED and namespace not in self._taken)

    def take(self, namespace: Hashable) -> None:
        """Count a task that begins."""
        self._taken[namespace] += 1

    def release(self, namespace: Hashable) -> None:
        """Count a task that has ended."""
        self._taken[namespace] -= 1
        if not self._taken[namespace]:
            del self._taken[namespace]
