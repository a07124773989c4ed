"""The programs that build images, behind one face."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from imaging.errors import ImagesError
from imaging.process import Programs

EPOCH = "SOURCE_DATE_EPOCH"
"""The variable with the time, in seconds since 1970, that everything in an image gets: the same input then makes the same image."""


@dataclass(frozen=True, slots=True)
class Build:
    """One image to build.

    Attributes:
        name: Of its log.
        reference: What the result is called.
        context: Folder with the Dockerfile.
        arguments: Build arguments.
        labels: Of the image, in addition to the Dockerfile's.
        secrets: Files by name, there for the RUN that mounts them and in no layer.
        platforms: Like linux/arm64; none means this machine's.
        target: Stage; "" means the last.
        uses_cache: Whether layers that are there already may be used.
    """

    name: str
    reference: str
    context: Path
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)
    platforms: Sequence[str] = ()
    target: str = ""
    uses_cache: bool = True

    def common_flags(self) -> list[str]:
        """Return the flags that docker, podman and buildah spell alike."""
        flags = [f"--build-arg={key}={value}" for key, value in self.arguments.items()]
        flags += [f"--label={key}={value}" for key, value in self.labels.items()]
        flags += [f"--secret=id={key},src={path}" for key, path in self.secrets.items()]
        flags += [f"--platform={','.join(self.platforms)}"] if self.platforms else []
        flags += [f"--target={self.target}"] if self.target else []
        flags += [] if self.uses_cache else ["--no-cache"]
        return flags

    def timestamp_flags(self) -> list[str]:
        """Return the flags of podman and buildah that set all times to $SOURCE_DATE_EPOCH, which docker's builder reads itself.

        Docker's format would keep the name of a working container, which differs from build to build.
        """
        seconds = os.environ.get(EPOCH)
        return [f"--timestamp={seconds}", "--format=oci"] if seconds else []

    @property
    def is_index(self) -> bool:
        """Whether the result is one name for several images, one for each platform."""
        return len(self.platforms) > 1


@dataclass(frozen=True, slots=True)
class Push:
    """One image to copy to a registry.

    Attributes:
        reference: Its name here.
        destination: Its name there.
        is_index: Whether it is one name for several images (see `Build`).
        is_plain: Whether the registry speaks HTTP.
    """

    reference: str
    destination: str
    is_index: bool = False
    is_plain: bool = False


class Engine(Protocol):
    """What this project asks of a builder."""

    @property
    def name(self) -> str:
        """The program's name."""

    def image_id(self, reference: str) -> str:
        """Return the ID of a local image, 64 hexadecimal digits, or "" if there is none of that name."""

    def pull(self, reference: str, *, timeout_seconds: float) -> bool:
        """Return whether a registry gave the image in time."""

    def build(self, build: Build) -> None:
        """Build an image, or raise ImagesError."""

    def import_root(self, tar: Path, reference: str) -> None:
        """Make an image of one layer from a tar of a root file system."""

    def label(self, reference: str, key: str) -> str:
        """Return a label of a local image, or "" if there is no such image or label."""

    def save(self, reference: str, file: Path) -> None:
        """Write a local image as a docker-archive, which docker, podman and containerd load."""

    def push(self, push: Push) -> str:
        """Copy a local image to a registry, and return its digest there.

        Raises:
            ImagesError: The registry did not take it.
        """

    def discard_leftovers(self) -> None:
        """Remove what a build that was killed left behind."""

    def command_line(self) -> str:
        """Return how the user runs this program on the same images."""


def push_with_digest_file(programs: Programs, program: Sequence[str], push: Push, flags: Sequence[str] = ()) -> str:
    """Push with podman or buildah, which write the digest to a file (see `Engine.push`)."""
    with TemporaryDirectory() as folder:
        digest = Path(folder) / "digest"
        command = [*program, *(("manifest", "push", "--all") if push.is_index else ("push",)), *flags, f"--digestfile={digest}"]
        command += ["--tls-verify=false"] if push.is_plain else []
        programs.run("push", [*command, push.reference, f"docker://{push.destination}"])
        return digest.read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class DockerLike:
    """`docker` or `podman`, with their own storage: what is built here is what the user sees."""

    name: str
    programs: Programs

    def image_id(self, reference: str) -> str:
        """See Engine."""
        return self.programs.answer([self.name, "image", "inspect", "--format={{.Id}}", reference]).removeprefix("sha256:")

    def pull(self, reference: str, *, timeout_seconds: float) -> bool:
        """See Engine."""
        return self.programs.succeeds([self.name, "pull", "--quiet", reference], timeout_seconds=timeout_seconds)

    def build(self, build: Build) -> None:
        """See Engine; several platforms need buildx in docker, a manifest list in podman."""
        command = [self.name, "build"]
        name = f"--tag={build.reference}"
        if build.is_index and self.name == "docker":
            command = [self.name, "buildx", "build"]
        elif build.is_index:
            self.programs.succeeds([self.name, "manifest", "rm", build.reference])
            name = f"--manifest={build.reference}"
        own = [] if self.name == "docker" else ["--layers", "--format=docker", *build.timestamp_flags()]
        self.programs.run(build.name, [*command, name, "--network=host", *own, *build.common_flags(), str(build.context)])

    def import_root(self, tar: Path, reference: str) -> None:
        """See Engine."""
        self.programs.run("base-import", [self.name, "import", str(tar), reference])

    def label(self, reference: str, key: str) -> str:
        """See Engine."""
        return self.programs.answer([self.name, "image", "inspect", f'--format={{{{index .Config.Labels "{key}"}}}}', reference])

    def save(self, reference: str, file: Path) -> None:
        """See Engine."""
        own = [] if self.name == "docker" else ["--format=docker-archive"]
        self.programs.run("save", [self.name, "save", *own, f"--output={file}", reference])

    def push(self, push: Push) -> str:
        """See Engine; docker speaks HTTP only to registries on loopback, and those that its daemon's configuration names."""
        if self.name == "podman":
            return push_with_digest_file(self.programs, [self.name], push)
        if push.is_index:
            raise ImagesError("docker cannot push images of several platforms that it has built before: use --builder podman or buildah")
        self.programs.run("push-tag", [self.name, "tag", push.reference, push.destination])
        self.programs.run("push", [self.name, "push", "--quiet", push.destination])
        repository = push.destination.rpartition(":")[0]
        digests = self.programs.answer([
            self.name,
            "image",
            "inspect",
            '--format={{join .RepoDigests "\\n"}}',
            push.destination,
        ]).splitlines()
        return next(digest.removeprefix(f"{repository}@") for digest in digests if digest.startswith(f"{repository}@"))

    def discard_leftovers(self) -> None:
        """Nothing: these clean up after themselves, and other people's containers live there too."""

    def command_line(self) -> str:
        """See Engine."""
        return self.name
