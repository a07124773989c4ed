"""Saved images: docker-archive tars."""

import json
import tarfile
from pathlib import Path

from imaging.engines import Engine


def save(engine: Engine, reference: str, file: Path) -> bool:
    """Write the image to `file` unless it is there already; return whether it was written.

    A reader never sees half a file: it gets its name when it is complete.
    """
    if archived_image(file) == (engine.image_id(reference), reference):
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.unlink(missing_ok=True)  # archives are added to, not replaced
    engine.save(reference, partial)
    partial.rename(file)
    return True


def archived_image(file: Path) -> tuple[str, str]:
    """Return ID and name of the image in a docker-archive, or two empty texts if it is none."""
    try:
        with tarfile.open(file) as archive:
            content = archive.extractfile("manifest.json")
            entry = json.loads(content.read())[0] if content else {}
    except (OSError, KeyError, IndexError, ValueError, tarfile.TarError):
        return "", ""
    return Path(entry.get("Config", "")).name.removesuffix(".json"), next(iter(entry.get("RepoTags") or []), "")
