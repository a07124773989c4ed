"""The order in which queued keys are handed out: first in, first out, in each of two lanes."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

MOST_IN_A_ROW: Final = 16
"""Urgent keys that go first while usual ones wait: who comes first all the time must not keep the others out for ever."""


class Lanes(Generic[KeyT]):
    """Distinct keys, the urgent ones first."""

    def __init__(self) -> None:
        """Begin empty."""
        self._usual = OrderedDict[KeyT, None]()
        self._urgent = OrderedDict[KeyT, None]()
        self._in_a_row = 0

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._usual) + len(self._urgent)

    def append(self, key: KeyT, *, is_urgent: bool) -> None:
        """Put `key`, which is in no lane, at the end of its lane."""
        (self._urgent if is_urgent else self._usual)[key] = None

    def hurry(self, key: KeyT) -> None:
        """Move `key` to the end of the urgent lane, if it is in the usual one."""
        if key in self._usual:
            del self._usual[key]
            self._urgent[key] = None

    def popleft(self) -> KeyT:
        """Take out the key that is next.

        Raises:
            KeyError: There is none.
        """
        is_urgent = bool(self._urgent) and (self._in_a_row < MOST_IN_A_ROW or not self._usual)
        self._in_a_row = self._in_a_row + 1 if is_urgent else 0
        return (self._urgent if is_urgent else self._usual).popitem(last=False)[0]
