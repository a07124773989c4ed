"""How the commands of this folder run with the project's own Python."""

import os
import sys
from pathlib import Path


def use_own_python() -> None:
    """Become the same command under the Python of .venv, if there is one and this is another; let it find mpiop."""
    root = Path(__file__).resolve().parent.parent
    own = root / ".venv" / "bin" / "python"
    if own.exists() and Path(sys.prefix) != own.parent.parent:
        os.execv(own, [str(own), *sys.argv])  # noqa: S606 - no shell is wanted
    sys.path.insert(0, str(root / "src"))
