"""A process around the operator: signals in, an exit code out."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, cast

import structlog
import uvloop

from mpiop.cli.watchdog import Watchdog
from mpiop.kube.errors import KubeError
from mpiop.leaderelection import LeaseLostError
from mpiop.server import ServerError

_FAILED = 1
_STANDARD_ERROR = 2
_EXPECTED = (LeaseLostError, ServerError, KubeError)
_log = structlog.get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


def stdout_descriptor() -> int | None:
    """Return the file descriptor of standard output, or None when the process was started without one.

    Then descriptor 1 may be anything by now, even the connection to the API server.
    """
    return sys.stdout.fileno() if sys.stdout else None


def run_until_stopped(work: Work, *, uses_uvloop: bool) -> int:
    """Run `work` until it ends or SIGTERM or SIGINT cancels it; return 0.

    When it fails, this process ends at once with code 1 and one line in the log: nothing that still hangs (a name look-up in a thread, a
    clean-up that waits) may keep a process alive that has lost its lease or is half dead. A second signal ends it at once too.
    """
    _occupy_standard_descriptors()
    gc.freeze()  # modules never become garbage; to search them again and again takes a twentieth of the processor time
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if uses_uvloop else None) as runner:
        failure = runner.run(_supervise(work))
        if failure is not None:
            _log_failure(failure)
            os._exit(_FAILED)
    return 0


def _occupy_standard_descriptors() -> None:
    """Open /dev/null in place of what the process was started without: libuv aborts when it gets a descriptor below 3."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        pass
    os.close(descriptor)


async def _supervise(work: Work) -> BaseException | None:
    """Return what made `work` fail, or None when it ended as requested."""
    loop = asyncio.get_running_loop()
    working = asyncio.ensure_future(work())
    watchdog = asyncio.create_task(Watchdog().run(), name="watchdog")
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, working, number)
    try:
        await asyncio.wait({working, watchdog}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = working if working.done() else watchdog  # whose death is one like any other's
        watchdog.cancel()
    failure = None if ended.cancelled() else ended.exception()
    if failure is None:
        _log.info("stopped")
    return failure


def _stop(working: asyncio.Future[None], number: signal.Signals) -> None:
    _log.info("stopping", signal=number.name)
    loop = working.get_loop()
    for other in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(other)
        signal.signal(other, signal.SIG_DFL)
    working.cancel()


def _log_failure(failure: BaseException) -> None:
    causes = list(_leaves(failure))
    lost = next((cause for cause in causes if isinstance(cause, LeaseLostError)), None)
    if lost:
        _log.error("leadership lost", error=str(lost))
        return
    errors = [f"{type(cause).__name__}: {cause}" for cause in causes]
    is_expected = all(isinstance(cause, _EXPECTED) for cause in causes)
    _log.error("the operator failed", errors=errors, exc_info=None if is_expected else failure)


def _leaves(failure: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group, and of the groups in it."""
    if not isinstance(failure, BaseExceptionGroup):
        yield failure
        return
    for inner in cast("BaseExceptionGroup[BaseException]", failure).exceptions:
        yield from _leaves(inner)
