"""One run: each image built, or found to be built already, and saved."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from imaging.archive import archived_image
from imaging.catalogue import ROOT, Image, in_registry
from imaging.engines import EPOCH, Build, Engine, Push
from imaging.fingerprint import fingerprint
from imaging.network import PROXY_VARIABLES
from imaging.programs import build_programs

VERSION_LABEL = "org.opencontainers.image.version"

INPUTS_LABEL = "kubeflow.org/mpiop.inputs"
"""Of what an image is made; a later run compares it."""


@dataclass(frozen=True, slots=True)
class Building:
    """What is the same for all images of one run.

    Attributes:
        base: Reference of the base image.
        version: Tag of the images that have no tag of their own.
        secrets: See engines.Build, as with platforms and uses_cache.
    """

    engine: Engine
    base: str
    version: str
    secrets: Mapping[str, Path]
    platforms: Sequence[str] = ()
    uses_cache: bool = True
    root: Path = ROOT

    def reference(self, image: Image) -> str:
        """Return the full name that the image gets."""
        return image.reference(self.version)

    def build(self, image: Image) -> str:
        """Build the image unless it is there, made of the same inputs; return what was done, in words.

        Raises:
            ImagesError: The build failed.
        """
        if image.is_go:
            build_programs(self.root / image.context, self.platforms)
        build = self._build_of(image)
        # A list of images has no label to compare; the builder's own layers make it quick.
        if self.uses_cache and not build.is_index and self.engine.label(build.reference, INPUTS_LABEL) == build.labels[INPUTS_LABEL]:
            return "nothing changed"
        start = time.monotonic()
        self.engine.build(build)
        self._correct_labels(build)
        return f"built in {time.monotonic() - start:.1f} s"

    def save(self, image: Image, folder: Path) -> Path:
        """Write the image as a docker-archive into `folder` unless it is there; return the file.

        A reader never sees half a file: it gets its name when it is complete.
        """
        file, reference = folder / f"{image.name}.tar", self.reference(image)
        if archived_image(file) != (self.engine.image_id(reference), reference):
            folder.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial")
            partial.unlink(missing_ok=True)  # archives are added to, not replaced
            self.engine.save(reference, partial)
            partial.rename(file)
        return file

    def push(self, image: Image, registry: str, *, is_plain: bool) -> str:
        """Copy the image to a registry and return its name there, with its digest instead of the tag."""
        destination = in_registry(self.reference(image), registry)
        digest = self.engine.push(Push(self.reference(image), destination, self._build_of(image).is_index, is_plain))
        return f"{destination.rpartition(':')[0]}@{digest}"

    def _correct_labels(self, build: Build) -> None:
        """Label the image again if its labels are of another build: buildah 1.28 and podman 4 reuse an image if only its labels differ."""
        if build.is_index or self.engine.label(build.reference, INPUTS_LABEL) == build.labels[INPUTS_LABEL]:
            return
        with TemporaryDirectory() as folder:
            (Path(folder) / "Dockerfile").write_text(f"FROM {build.reference}\n", "utf-8")
            self.engine.build(replace(build, name=f"{build.name}-labels", context=Path(folder), arguments={}, target="", uses_cache=False))

    def _build_of(self, image: Image) -> Build:
        context = self.root / image.context
        platform = ",".join(self.platforms)
        # A proxy makes no difference to the image; the image that the base's name refers to today does.
        inputs = {"base": self.engine.image_id(self.base) or self.base, "version": self.version, "platform": platform}
        inputs |= {EPOCH: os.environ[EPOCH]} if EPOCH in os.environ else {}
        return Build(
            name=image.name,
            reference=self.reference(image),
            context=context,
            arguments={"BASE_IMAGE": self.base} | {name: os.environ[name] for name in PROXY_VARIABLES if os.environ.get(name)},
            labels={VERSION_LABEL: self.version, INPUTS_LABEL: fingerprint(image, context, inputs)},
            secrets=self.secrets,
            platforms=self.platforms,
            target=image.target,
            uses_cache=self.uses_cache,
        )
