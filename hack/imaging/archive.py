"""Saved images: docker-archive tars."""

import json
import tarfile
from pathlib import Path


def archived_image(file: Path) -> tuple[str, str]:
    """Return ID and name of the image in a docker-archive, or two empty texts if it is none."""
    try:
        with tarfile.open(file) as archive:
            content = archive.extractfile("manifest.json")
            entry = json.loads(content.read())[0] if content else {}
    except (OSError, KeyError, IndexError, ValueError, tarfile.TarError):
        return "", ""
    return Path(entry.get("Config", "")).name.removesuffix(".json"), next(iter(entry.get("RepoTags") or []), "")
