"""Shows progress in a notebook or terminal."""

import sys
from typing import Any


class Live:
    """Shows each line that it is called with: in a notebook in place of the line before, elsewhere below it.

    ```python
    job.wait(report=Live())
    ```
    """

    def __init__(self) -> None:
        """Show nothing yet."""
        self._shown: Any = None

    def __call__(self, line: str) -> None:
        """Show `line`."""
        ipython: Any = sys.modules.get("IPython")
        if ipython is None or ipython.get_ipython() is None:
            print(line, flush=True)  # noqa: T201 - what it is for
        elif self._shown is None:
            self._shown = ipython.display.display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._shown.update({"text/plain": line}, raw=True)
