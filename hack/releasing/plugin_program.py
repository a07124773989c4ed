"""The program in the archive of kubectl-mpi; PyInstaller makes an executable of it.

Called kubectl_complete-mpi, it completes words for kubectl.
"""

import os
import sys
from collections.abc import Callable, MutableMapping

from mpiop.kubectl.main import main

_LIBRARY_PATH = "LD_LIBRARY_PATH"
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem")
"""Certificate authorities on Debian, Red Hat, SUSE and Alpine: the OpenSSL in the archive knows the folder of one of them only."""


def set_environment(variables: MutableMapping[str, str], is_file: Callable[[str], bool]) -> None:
    """Change the environment so that it fits this machine and the programs that we run, such as kubectl and credential plug-ins.

    PyInstaller's start sets variables that are meant for this program alone: a child would load our libraries in place of its own.

    Args:
        variables: The environment, which is changed.
        is_file: Whether a path is that of a file.
    """
    original = variables.pop(f"{_LIBRARY_PATH}_ORIG", None)
    variables.pop(_LIBRARY_PATH, None)
    if original is not None:
        variables[_LIBRARY_PATH] = original
    for name in [name for name in variables if name.startswith("_PYI_")]:
        del variables[name]
    bundle = next(filter(is_file, _BUNDLES), None)
    if bundle is not None and "SSL_CERT_FILE" not in variables and "SSL_CERT_DIR" not in variables:
        variables["SSL_CERT_FILE"] = bundle


if __name__ == "__main__":
    set_environment(os.environ, os.path.isfile)
    if os.path.basename(sys.argv[0]) == "kubectl_complete-mpi":  # noqa: PTH119 - importing pathlib makes the start slower
        from mpiop.kubectl.completion import complete_for_kubectl

        complete_for_kubectl()
    else:
        main()
