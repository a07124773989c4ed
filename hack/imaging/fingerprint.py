"""What goes into an image, as one short text: the same text, the same image."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

from imaging.catalogue import Image
from imaging.errors import ImagesError

DOCKERIGNORE = ".dockerignore"


def input_files(context: Path) -> list[Path]:
    """Return the files of `context` that its .dockerignore lets in, and the Dockerfile, sorted.

    Raises:
        ImagesError: The .dockerignore is not of the one form that is understood here: `*`, then `!PATH`, then `**/PATTERN`.
    """
    included: list[Path] = [context / "Dockerfile", context / DOCKERIGNORE]
    excluded: list[str] = []
    rules = [line.strip() for line in (context / DOCKERIGNORE).read_text("utf-8").splitlines()]
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    if rules[:1] != ["*"]:
        raise ImagesError(f"{context / DOCKERIGNORE}: the first rule must be `*`; what the image needs follows as `!PATH`")
    for rule in rules[1:]:
        if rule.startswith("!"):
            included.append(context / rule[1:])
        elif rule.startswith("**/"):
            excluded.append(rule.removeprefix("**/"))
        else:
            raise ImagesError(f"{context / DOCKERIGNORE}: `{rule}` is neither `!PATH` nor `**/PATTERN`")
    return sorted({file for path in included for file in _files(path) if not _is_excluded(file.relative_to(context), excluded)})


def fingerprint(image: Image, context: Path, inputs: Mapping[str, str]) -> str:
    """Return 32 hexadecimal digits that stand for the files in `context`, the stage and the other `inputs` of an image."""
    digest = hashlib.sha256(json.dumps([image.target, dict(sorted(inputs.items()))]).encode())
    for file in input_files(context):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(context)}\0{file.stat().st_mode & 0o111:o}\0{content}\n".encode())
    return digest.hexdigest()[:32]


def _files(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return (file for file in path.rglob("*") if file.is_file())
    if path.is_file():
        return (path,)
    raise ImagesError(f"{path} is missing, and the image needs it")


def _is_excluded(file: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatch(part, pattern) for pattern in patterns for part in file.parts)
