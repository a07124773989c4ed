"""What stands in for what is not here: an image with a few files on top for one that is too large, a node that claims to have devices."""

import contextlib
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from demonstration.operator_images import FOLDER
from e2e.kubectl import Kubectl
from embedded.images import ARCHITECTURES
from mpiop.kube.resources import Resource

PI_IMAGE = FOLDER / "pi.tar"
"""Saved by the fixture `cluster`: Debian with Open MPI and sshd, for root and for mpiuser."""

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)

Files = Mapping[str, tuple[bytes, int]]
"""Absolute path → content and mode."""


@contextlib.contextmanager
def advertised(cluster: Kubectl, resource: str, count: int) -> Iterator[None]:
    """Let a node claim meanwhile to have so many devices."""
    [node, *_] = [each["metadata"]["name"] for each in cluster.read_all(NODES) if each["metadata"]["labels"].get("type") != "kwok"]

    def advertise(value: str | None) -> None:
        patch = {"status": {"capacity": {resource: value}}}
        cluster.run("patch", "node", node, "--subresource=status", "--type=merge", "--patch", json.dumps(patch))

    try:
        advertise(str(count))
        cluster.until_one(NODES, node, lambda found: found["status"]["allocatable"].get(resource) == str(count))
        yield
    finally:
        advertise(None)


def image_with(files: Files, name: str, archive: Path, *, base: Path | None = None, settings: Mapping[str, Any] | None = None) -> Path:
    """Write a docker-archive of an image that is `base` with `files` on top, and return `archive`.

    Args:
        files: What is added, or covers what the base has.
        name: The image's name with registry and tag.
        archive: Is written again.
        base: A docker-archive; None is an empty image.
        settings: Changes of the image's configuration: User, Env, Entrypoint …
    """
    layer = _layer(files)
    with tarfile.open(archive, "w") as written:
        config, layers = _copied_layers(base, written) if base else (_empty_config(), [])
        config["rootfs"]["diff_ids"].append(f"sha256:{hashlib.sha256(layer).hexdigest()}")
        config.pop("history", None)  # would have to describe the new layer too
        config["config"] |= settings or {}
        _add(written, "stand-in.tar", layer)
        _add(written, "config.json", json.dumps(config).encode())
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": [*layers, "stand-in.tar"]}]
        _add(written, "manifest.json", json.dumps(manifest).encode())
    return archive


def _copied_layers(base: Path, written: tarfile.TarFile) -> tuple[dict[str, Any], list[str]]:
    """Copy the layers of `base`; return its configuration and their names."""
    with tarfile.open(base) as archive:

        def content(name: str) -> bytes:
            stream = archive.extractfile(name)
            assert stream is not None, name
            return stream.read()

        [manifest] = json.loads(content("manifest.json"))
        layers: list[str] = manifest["Layers"]
        for name in layers:
            _add(written, name, content(name))
        config: dict[str, Any] = json.loads(content(manifest["Config"]))
    return config, layers


def _empty_config() -> dict[str, Any]:
    return {"architecture": ARCHITECTURES[platform.machine()], "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}


def _layer(files: Files) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for path, (content, mode) in files.items():
            _add(layer, path.lstrip("/"), content, mode)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
