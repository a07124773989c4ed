"""What the commands of this folder have in common."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FrameType

from demonstration.screen import DemoError
from mpiop import log
from mpiop.kube.errors import KubeError

FAILED = 2
INTERRUPTED = 130


def run(name: str, work: Callable[[], int]) -> int:
    """Do `work` and return the exit code: 2, and a line that reports why, when it cannot be done.

    SIGTERM does what Ctrl-C does: clusters and processes are ended.
    """
    log.configure("auto", "error", fd=sys.stderr.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts it in the background has it ignored
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return work()
    except* KeyboardInterrupt:
        code = INTERRUPTED
    except* (ValueError, RuntimeError, TimeoutError, KubeError, DemoError, subprocess.CalledProcessError) as errors:
        code = FAILED
        for error in _single(errors):
            print(f"{name}: {error}", file=sys.stderr)
    return code


def _single(errors: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions of a group and of the groups in it."""
    for error in errors.exceptions:
        yield from _single(error) if isinstance(error, BaseExceptionGroup) else (error,)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # asyncio knows what to do with this one.
    os.kill(os.getpid(), signal.SIGINT)
