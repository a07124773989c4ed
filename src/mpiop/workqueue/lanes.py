"""The order in which queued keys are handed out: first in, first out, in each of three lanes."""

from collections import OrderedDict
from collections.abc import Hashable
from enum import IntEnum
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

MOST_IN_A_ROW: Final = 16
"""Keys that go before one that waits in another lane: who comes first all the time must not keep the others out for ever."""
FEW: Final = 64
"""So many usual keys delay no news for long."""


class Lane(IntEnum):
    """How soon a key is to be handed out.

    What is pressing goes first. A few usual keys go before mere news: what they begin takes its time, and goes on meanwhile. Many would
    keep the news back for long: then news goes first, and half of the workers are kept free for what is pressing, so that fewer things
    are begun at a time and each is done sooner.
    """

    PRESSING = 0
    NEWS = 1
    USUAL = 2


class Lanes(Generic[KeyT]):
    """Distinct keys in the order of their lanes."""

    def __init__(self, most_busy: int) -> None:
        """Begin empty; while many usual keys wait and `most_busy` are in work, only pressing ones are handed out."""
        self._most_busy = most_busy
        self._lanes = {lane: OrderedDict[KeyT, None]() for lane in Lane}
        self._passed = dict.fromkeys(Lane, 0)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return sum(map(len, self._lanes.values()))

    def __contains__(self, key: object) -> bool:
        """Tell whether `key` is in any lane."""
        return any(key in lane for lane in self._lanes.values())

    def append(self, key: KeyT, lane: Lane) -> None:
        """Put `key`, which is in no lane, at the end of `lane`."""
        self._lanes[lane][key] = None

    def hurry(self, key: KeyT, lane: Lane) -> None:
        """Move `key` to the end of `lane`, if it is in a later one."""
        for later in range(lane + 1, len(Lane)):
            if key in self._lanes[Lane(later)]:
                del self._lanes[Lane(later)][key]
                self.append(key, lane)

    def has_next(self, in_work: int) -> bool:
        """Tell whether there is a key to hand out while so many others are in work."""
        return bool(self._open(in_work))

    def popleft(self, in_work: int) -> KeyT:
        """Take out the key that is next while so many others are in work.

        Raises:
            IndexError: There is none.
        """
        late = [lane for lane in Lane if self._lanes[lane] and self._passed[lane] >= MOST_IN_A_ROW]
        lane = (late or self._open(in_work))[0]
        for each in Lane:
            self._passed[each] += bool(self._lanes[each])
        self._passed[lane] = 0
        return self._lanes[lane].popitem(last=False)[0]

    def _open(self, in_work: int) -> list[Lane]:
        """Return the lanes that have keys to hand out, the first one first."""
        order: tuple[Lane, ...] = (Lane.PRESSING,)
        if len(self._lanes[Lane.USUAL]) <= FEW:
            order = (Lane.PRESSING, Lane.USUAL, Lane.NEWS)
        elif in_work < self._most_busy:
            order = tuple(Lane)
        return [lane for lane in order if self._lanes[lane]]
