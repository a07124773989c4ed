"""The terminal. A module of its own, because verbs that only pass lines on start faster without rich."""

import sys

from rich.console import Console

_PIPE_COLUMNS = 500


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise what `main` expects, instead of ending the process with 1."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return what writes to the terminal: in colour on one, in plain lines as long as they are in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_COLUMNS
    return _Console(stderr=stderr, width=width, highlight=False, soft_wrap=not stream.isatty(), emoji=False, markup=False)
