"""What the operator remembers about jobs between two syncs, in one place, so that a job that is gone is forgotten at once.

All of it may be lost without harm: it saves requests, and shows which failures last.
"""

from typing import Any

from mpiop.kube.objects import Key


class JobMemory:
    """Tables with what is remembered, by job; the module that asks for a table owns what is in it."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._tables: list[dict[Key, Any]] = []

    def table(self) -> dict[Key, Any]:
        """Return a new table."""
        self._tables.append({})
        return self._tables[-1]

    def forget(self, key: Key) -> None:
        """Forget the job `key`."""
        for table in self._tables:
            table.pop(key, None)
