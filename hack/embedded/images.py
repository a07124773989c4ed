"""Images in the cluster: loading archives, and making the pause image from its one program."""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import IO

from embedded import control
from embedded.component import SECOND_NODE
from embedded.errors import ClusterError
from embedded.layout import Layout
from embedded.node import CONTAINERD_SOCKET
from embedded.record import Record

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def pause_archive(program: bytes, name: str, machine: str) -> bytes:
    """Return a docker-archive of an image that holds only `program`, as /pause.

    Args:
        program: A static executable.
        name: The image's name with its tag.
        machine: As uname(1) reports.
    """
    layer = _tar({"pause": (program, 0o755)})
    config = {
        "architecture": ARCHITECTURES[machine],
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    return _tar({
        "layer.tar": (layer, 0o644),
        "config.json": (json.dumps(config).encode(), 0o644),
        "manifest.json": (json.dumps(manifest).encode(), 0o644),
    })


def load_archive(layout: Layout, record: Record, archive: Path) -> list[str]:
    """Load a docker-archive or OCI archive and return the names of its images.

    Raises:
        ClusterError: The file is not there, or containerd would not have it.
    """
    if record.options.control_plane_only:
        raise ClusterError(f"cluster {layout.name!r} has a control plane only, and so no place for images")
    if not archive.is_file():
        raise ClusterError(f"{archive}: no such file; `docker save` and `buildah push … docker-archive:FILE` make one")
    names = list[str]()
    for node in ("", SECOND_NODE)[: record.options.nodes]:
        with archive.open("rb") as stream:
            names = load_stream(layout, record, stream, str(archive), node)
    return names


def load_stream(layout: Layout, record: Record, stream: IO[bytes], origin: str, node: str) -> list[str]:
    """Load the archive read from `stream`, an open file, on a node; `origin` is for messages.

    Raises:
        ClusterError: containerd would not have it.
    """
    ctr = [record.programs["ctr"], f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io"]
    # The name that a manifest writes is the one that the kubelet looks up: both go through the same expansion (docker.io/library/…).
    command = control.enter_command(layout, [*ctr, "images", "import", "--no-unpack=false", "-"], node=node)
    result = subprocess.run(command, check=False, stdin=stream, capture_output=True, text=True)
    if result.returncode != 0:
        raise ClusterError(f"{origin}: containerd could not load it: {(result.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return [words[0] for line in result.stdout.splitlines() if (words := line.split())[1:] == ["saved"]]


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
