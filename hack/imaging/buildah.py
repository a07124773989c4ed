"""buildah without an engine, in storage of our own: nothing of the host's containers is seen or changed."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from imaging.engines import Build, Push, push_with_digest_file
from imaging.process import Programs

ENVIRONMENT = {"BUILDAH_ISOLATION": "chroot", "BUILDAH_FORMAT": "docker"}
"""chroot: RUN works inside a container and on a machine that may make no cgroups. docker: the ID in the archive is the image's ID."""

_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}\n'
"""The host may have no /etc/containers/policy.json, without which buildah refuses every image."""


@dataclass(frozen=True, slots=True)
class Buildah:
    """`buildah` on the storage in `folder`."""

    programs: Programs
    folder: Path
    driver: str
    name: str = "buildah"

    @classmethod
    def on(cls, folder: Path, programs: Programs) -> "Buildah":
        """Prepare `folder`; the storage driver is chosen once, because what one driver stored another cannot read."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy.json").write_text(_POLICY, "utf-8")
        chosen = folder / "driver"
        if not chosen.exists():
            overlay = cls(programs, folder, "overlay")
            chosen.write_text("overlay" if programs.succeeds([*overlay._program(), "info"]) else "vfs", "utf-8")
        return cls(programs, folder, chosen.read_text("utf-8"))

    def image_id(self, reference: str) -> str:
        """See Engine."""
        return self.programs.answer([*self._program(), "inspect", "--type=image", "--format={{.FromImageID}}", reference])

    def pull(self, reference: str, *, timeout_seconds: float) -> bool:
        """See Engine."""
        return self.programs.succeeds([*self._program(), "pull", self._policy(), "--quiet", reference], timeout_seconds=timeout_seconds)

    def build(self, build: Build) -> None:
        """See Engine."""
        name = f"--tag={build.reference}"
        if build.is_index:
            self.programs.succeeds([*self._program(), "manifest", "rm", build.reference])
            name = f"--manifest={build.reference}"
        flags = ["--layers", "--network=host", self._policy(), *build.timestamp_flags(), *build.common_flags()]
        self.programs.run(build.name, [*self._program(), "bud", name, *flags, str(build.context)])

    def import_root(self, tar: Path, reference: str) -> None:
        """See Engine."""
        with TemporaryDirectory(prefix="base-", dir=self.folder) as context:
            (Path(context) / "root.tar").hardlink_to(tar)
            (Path(context) / "Dockerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["/bin/sh"]\n', "utf-8")
            self.build(Build(name="base-import", reference=reference, context=Path(context)))

    def label(self, reference: str, key: str) -> str:
        """See Engine."""
        label = f'--format={{{{index .Docker.Config.Labels "{key}"}}}}'
        return self.programs.answer([*self._program(), "inspect", "--type=image", label, reference])

    def save(self, reference: str, file: Path) -> None:
        """See Engine."""
        self.programs.run("save", [*self._program(), "push", self._policy(), reference, f"docker-archive:{file}:{reference}"])

    def push(self, push: Push) -> str:
        """See Engine."""
        return push_with_digest_file(self.programs, self._program(), push, [self._policy()])

    def discard_leftovers(self) -> None:
        """Remove the working containers of a build that was killed; the lock reports that no other build runs in this storage."""
        self.programs.succeeds([*self._program(), "rm", "--all"], timeout_seconds=120)

    def command_line(self) -> str:
        """See Engine."""
        return shlex.join(self._program())

    def _program(self) -> list[str]:
        return ["buildah", f"--root={self.folder / 'storage'}", f"--runroot={self.folder / 'run'}", f"--storage-driver={self.driver}"]

    def _policy(self) -> str:
        return f"--signature-policy={self.folder / 'policy.json'}"
