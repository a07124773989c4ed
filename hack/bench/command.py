"""What the commands of this folder have in common."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from mpiop import log
from mpiop.kube.errors import KubeError

INTERRUPTED = 130


def run(name: str, work: Callable[[], int]) -> int:
    """Do `work` and return the exit code: 2, and a line that says why, when it cannot be done.

    SIGTERM does what Ctrl-C does: clusters and processes are ended.
    """
    log.configure("auto", "error", fd=sys.stderr.fileno())
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return work()
    except (ValueError, RuntimeError, KubeError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # asyncio knows what to do with this one.
    os.kill(os.getpid(), signal.SIGINT)
