"""Programs of other projects next to the operator: built from their released Go modules, run in Pods by their own manifests."""

import json
import subprocess
from pathlib import Path

from e2e.clusters import ROOT, load_archives
from e2e.stand_ins import image_with
from embedded.layout import GO_SOURCES
from embedded.parts import PARTS
from embedded.progress import Progress
from embedded.toolchain import build_environment, find_go


def build_program(name: str) -> Path:
    """Build the program `name` from hack/embedded/parts.py, which takes minutes from a cold cache, and return where it is."""
    part = next(part.name for part in PARTS.values() for program in part.programs if name in program.names)
    built = subprocess.run(["hack/cluster", "build", part], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    paths = dict(line.split("\t") for line in built.splitlines())
    return Path(paths[name])


def module_folder(part: str, module: str) -> Path:
    """Return the folder of the sources of `module` in the version that `part` is built of: there are its manifests."""
    go = find_go(Progress())
    command = [go, "mod", "download", "-json", module]
    reported = subprocess.run(command, cwd=GO_SOURCES / part, env=build_environment(go), check=True, capture_output=True, text=True).stdout
    return Path(json.loads(reported)["Dir"])


def load_program(cluster: str, program: str, path: str, image: str, archive: Path, *, user: str = "") -> None:
    """Put an image on the node of the embedded cluster `cluster` that holds `program` at `path`, and starts it.

    Args:
        cluster: Name of the cluster.
        program: Which one, by its name in hack/embedded/parts.py.
        path: Where its manifests expect it.
        image: Name that its manifests have, with registry and tag.
        archive: File that may be written.
        user: Who it runs as, `uid:gid`; "" is root.
    """
    image_with({path: (build_program(program).read_bytes(), 0o755)}, image, archive, settings={"Entrypoint": [path], "User": user})
    load_archives(cluster, archive)
