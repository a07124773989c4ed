"""Programs from the distribution: what is needed, what is missing, and installing it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from embedded import interrupts
from embedded.errors import ClusterError
from embedded.progress import Progress

# Program (a name looked up in PATH, or a path) → Debian package.
CONTROL_PLANE = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux", "openssl": "openssl"}
NODE = {
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "mount": "mount",
}
BUILD = {"setpriv": "util-linux", "/etc/ssl/certs/ca-certificates.crt": "ca-certificates"}
SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def is_there(program: str) -> bool:
    """Return whether `program` (a name or an absolute path) exists."""
    return Path(program).exists() if program.startswith("/") else shutil.which(program, path=SEARCH_PATH) is not None


def missing_packages(programs: dict[str, str], present: Callable[[str], bool] = is_there) -> list[str]:
    """Return the packages to install so that each of `programs` is there."""
    return sorted({package for program, package in programs.items() if not present(program)})


def install(packages: list[str], progress: Progress) -> None:
    """Install Debian packages, after saying so.

    Raises:
        ClusterError: There is no apt-get, or it failed.
    """
    if not packages:
        return
    names = " ".join(packages)
    if not shutil.which("apt-get"):
        raise ClusterError(f"this machine lacks {names} (Debian's names) and has no apt-get; install them and try again")
    progress.say(f"Installing Debian packages, this once: {names}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120"]
    with interrupts.deferred():  # dpkg stopped half-way would leave the machine to be repaired by hand
        # An update that fails (one mirror of several is down) need not matter; the install shows it.
        _run([*apt, "update"], environment)
        result = _run([*apt, "install", "--no-install-recommends", *packages], environment)
    if result.returncode != 0:
        reason = next((line for line in result.stderr.splitlines() if line.startswith("E:")), result.stderr.strip()[-200:])
        raise ClusterError(f"apt-get could not install {names}: {reason}; check the network and /etc/apt/sources.list")


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # In a session of its own it does not receive the terminal's Ctrl-C.
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
