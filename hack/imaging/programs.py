"""Go programs for images: built on this machine, for no image has a Go, and copied by the Dockerfile."""

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from embedded.errors import ClusterError
from embedded.images import ARCHITECTURES
from embedded.progress import Progress
from embedded.toolchain import build_environment, find_go
from imaging.errors import ImagesError


def build_programs(module: Path, platforms: Sequence[str]) -> list[Path]:
    """Build the Go module into its folder `build/<architecture>/`, for each platform, by default this machine's; return these folders.

    The same sources make the same bytes.

    Raises:
        ImagesError: There is no Go, or the program cannot be built.
    """
    architectures = [name.split("/")[1] for name in platforms] or [ARCHITECTURES[platform.machine()]]
    try:
        go = find_go(Progress())
    except ClusterError as error:
        raise ImagesError(str(error)) from error
    targets = [module / "build" / architecture for architecture in architectures]
    for architecture, target in zip(architectures, targets, strict=True):
        command = [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", f"{target}/", "."]
        environment = build_environment(go) | {"GOOS": "linux", "GOARCH": architecture}
        result = subprocess.run(command, cwd=module, env=environment, check=False, capture_output=True, text=True)
        if result.returncode != 0:
            raise ImagesError(f"{module} cannot be built for {architecture}: {result.stderr.strip()[-300:]}")
    return targets
