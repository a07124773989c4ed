"""A builder in memory: it keeps what it was asked to build, and answers like a real one."""

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from imaging.engines import Build


@dataclass
class FakeEngine:
    """See imaging.engines.Engine; `registry` holds what can be pulled."""

    name: str = "fake"
    images: dict[str, dict[str, str]] = field(default_factory=dict)
    registry: set[str] = field(default_factory=set)
    builds: list[Build] = field(default_factory=list)
    pulls: list[str] = field(default_factory=list)
    saves: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    reuses_images: bool = False
    """Whether a build from the cache changes no label, as with buildah 1.28."""

    def image_id(self, reference: str) -> str:
        labels = self.images.get(reference)
        return "" if labels is None else hashlib.sha256(json.dumps([reference, labels]).encode()).hexdigest()

    def label(self, reference: str, key: str) -> str:
        return self.images.get(reference, {}).get(key, "")

    def pull(self, reference: str, *, timeout_seconds: float) -> bool:
        assert timeout_seconds > 0
        self.pulls.append(reference)
        if reference in self.registry:
            self.images[reference] = {}
        return reference in self.registry

    def build(self, build: Build) -> None:
        self.builds.append(build)
        if not (self.reuses_images and build.uses_cache and build.reference in self.images):
            self.images[build.reference] = dict(build.labels)

    def import_root(self, tar: Path, reference: str) -> None:
        assert tar.is_file()
        self.imports.append(reference)
        self.images[reference] = {}

    def save(self, reference: str, file: Path) -> None:
        self.saves.append(reference)
        manifest = json.dumps([{"Config": f"{self.image_id(reference)}.json", "RepoTags": [reference]}]).encode()
        with tarfile.open(file, "w") as archive:
            member = tarfile.TarInfo("manifest.json")
            member.size = len(manifest)
            archive.addfile(member, io.BytesIO(manifest))

    def discard_leftovers(self) -> None:
        """Nothing is left over in memory."""

    def command_line(self) -> str:
        return self.name
