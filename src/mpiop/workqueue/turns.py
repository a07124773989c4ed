"""Turns: expensive syncs run one at a time, however many workers a queue has."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from mpiop.workqueue.worker import NotReady

RETRY_SECONDS: Final = 1.0


class Turns:
    """Lets in one sync at a time. The others are put off, so that no worker waits for a turn while cheap keys are queued."""

    def __init__(self) -> None:
        """Let in the first one."""
        self._is_taken = False

    @contextmanager
    def take(self) -> Generator[None]:
        """Hold the turn for as long as the block runs.

        Raises:
            NotReady: Another sync has it.
        """
        if self._is_taken:
            raise NotReady(RETRY_SECONDS)
        self._is_taken = True
        try:
            yield
        finally:
            self._is_taken = False
