"""mpiop: an MPI Operator for Kubernetes."""

import os
from contextlib import suppress

__version__ = "0.1.0"


def _refuse_mixed_installation() -> None:
    """Return if one distribution installed this package.

    mpiop and mpiop-client have files in common. pip installs both, so files of two versions get mixed.

    Raises:
        ImportError: Both are installed here.
    """
    folder = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - importing pathlib makes the start slower
    found: set[str] = set()
    with suppress(OSError):  # a zip file, not a folder
        found = {name.partition("-")[0] for name in os.listdir(folder) if name.startswith("mpiop") and name.endswith(".dist-info")}  # noqa: PTH208 - the same
    if found >= {"mpiop", "mpiop_client"}:
        raise ImportError(
            f"mpiop and mpiop-client are both installed in {folder} and overwrite each other's files; "
            "run: pip uninstall --yes mpiop mpiop-client, then install one of them (mpiop[tools] includes the client)"
        )


_refuse_mixed_installation()
