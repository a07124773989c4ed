"""Something done to the server as a whole, once, with several runs that live through it: each at the stage where it is to meet it."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from faults.run import NotSeenError, Run
from faults.testbed import UP, FaultTestbed, command

Step = tuple[str, ...] | float
MEETING_SECONDS = 240.0
PROBE_SECONDS = 0.5


@dataclass(eq=False)
class Disturbance:
    """What is done, and who has to be there first.

    Attributes:
        steps: Arguments of `hack/cluster`, and pauses in seconds between them. After the first step the runs continue.
        parties: How many runs live through it.
        starting: How many of them are to meet it while their job begins; they start when the others exist, because they cannot wait long.
    """

    steps: Sequence[Step]
    parties: int = 1
    starting: int = 0
    _present: int = field(default=0, init=False)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)
    _happening: asyncio.Task[None] | None = field(default=None, init=False)
    _has_begun: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def wait_to_start(self, run: Run) -> None:
        """Return when the operator is ready, and all runs that can wait are where they should be.

        Raises:
            NotSeenError: They do not come there.
        """
        await run.until("/readyz to be well", run.replicas[0].is_ready)
        async with self._changed:
            await _soon(self._changed.wait_for(lambda: self._present >= self.parties - self.starting))

    async def meet(self, run: Run) -> None:
        """Wait for the other runs; return when the server is disturbed.

        Raises:
            NotSeenError: They do not come.
        """
        async with self._changed:
            self._present += 1
            self._changed.notify_all()
        if self._present == self.parties:
            self._happening = asyncio.create_task(self._happen(run.testbed))
        await _soon(self._has_begun.wait())

    async def live_through(self, run: Run) -> None:
        """Return when the server is as before; note when /healthz reports meanwhile that the process should be killed.

        Raises:
            NotSeenError: The server did not return.
        """
        await _soon(self._has_begun.wait())
        assert self._happening is not None
        while not self._happening.done():
            if (answer := await run.replicas[0].fetch("/healthz")) and not answer.startswith("200 "):
                run.findings.append(f"/healthz while the server is disturbed: {answer}")
            await asyncio.wait({self._happening}, timeout=PROBE_SECONDS)
        try:
            await self._happening
        except RuntimeError as error:
            raise NotSeenError(f"the server did not come back: {error}") from error

    async def end(self) -> None:
        """Return when nothing is done to the server any more."""
        if self._happening is not None:
            await asyncio.wait({self._happening})

    async def _happen(self, testbed: FaultTestbed) -> None:
        try:
            for step in self.steps:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    await testbed.control(*step)
                self._has_begun.set()
        finally:
            self._has_begun.set()
            # Controllers that lost their own leases have ended; the jobs need them.
            await command("hack/cluster", "up", "--name", testbed.cluster, *UP)


async def _soon(coming: Coroutine[Any, Any, bool]) -> None:
    try:
        await asyncio.wait_for(coming, MEETING_SECONDS)
    except TimeoutError:
        raise NotSeenError("never seen: the other runs where they are to meet the fault") from None
