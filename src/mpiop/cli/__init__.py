"""The command `mpiop`: flags to Options, then the operator until it is stopped.

What is heavy is imported late, so that --version and --help answer at once.
"""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Never

from mpiop.cli.flags import Command, parse_command
from mpiop.cli.goflags import FlagError

__all__ = ["main"]

_USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 ended as requested, 1 failed, 2 not understood.

    Args:
        arguments: The command line without the program's name; by default that of this process.
    """
    try:
        command = parse_command(sys.argv[1:] if arguments is None else arguments, os.environ)
        if command.answer:
            print(command.answer)  # noqa: T201 - what a command answers goes to standard output
            return 0
        _check_election(command)
    except (FlagError, ValueError) as error:
        print(f"mpiop: {error}", file=sys.stderr)  # noqa: T201 - before there are logs
        return _USAGE_ERROR
    return _run(command)


def _check_election(command: Command) -> None:
    from mpiop.leaderelection import ElectionConfig  # noqa: PLC0415 - late, see above

    ElectionConfig.from_options(command.options)


def _run(command: Command) -> int:
    # As the first process of a container we would ignore a SIGTERM that comes while the rest is being imported.
    signal.signal(signal.SIGTERM, _exit_before_the_start)
    import structlog  # noqa: PLC0415 - late, see above

    from mpiop import log, operator  # noqa: PLC0415 - late, see above
    from mpiop.cli import process  # noqa: PLC0415 - late, see above

    options = command.options
    log.configure(options.log_format, options.log_level, fd=process.stdout_descriptor())
    if command.ignored:
        structlog.get_logger(__name__).info("klog flags ignored", flags=list(command.ignored))
    return process.run_until_stopped(lambda: operator.run(options), uses_uvloop=options.uvloop)


def _exit_before_the_start(_number: int, _frame: FrameType | None) -> Never:
    sys.exit(0)
