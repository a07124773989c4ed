"""Signs pushed images with the release's key, and states in the registry how they were built; cosign does both, without any service."""

import getpass
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_ssh_private_key

from releasing.errors import ReleaseError

PUBLIC_KEY: Final = "cosign.pub"
_BUILDER: Final = "https://mpiop.kubeflow.org/release"
_BUILD_TYPE: Final = "https://mpiop.kubeflow.org/release/v1"
"""Identifiers: docs/releasing.md describes the build, and the holder of the key answers for it."""


@dataclass(frozen=True, slots=True)
class Signer:
    """cosign with a key of its own form.

    Attributes:
        cosign: The program.
        folder: Where its key is; nobody else may read it.
        is_plain: Whether the registry speaks HTTP.
    """

    cosign: Path
    folder: Path
    is_plain: bool = False

    def import_key(self, pem: bytes) -> bytes:
        """Convert the private key to cosign's form, and return the public key as PEM.

        Raises:
            ReleaseError: cosign cannot use it.
        """
        (self.folder / "key.pem").write_bytes(pem)
        self._run("import-key-pair", f"--key={self.folder / 'key.pem'}", f"--output-key-prefix={self.folder / 'cosign'}")
        return (self.folder / PUBLIC_KEY).read_bytes()

    def sign(self, image: str, provenance: Path) -> None:
        """Sign `image`, a name with a digest, and attach the SLSA provenance in the file `provenance`, signed too.

        Raises:
            ReleaseError: The registry did not take them.
        """
        common = [f"--key={self.folder / 'cosign.key'}", "--use-signing-config=false", "--tlog-upload=false", "--yes"]
        common += ["--allow-http-registry"] if self.is_plain else []
        self._run("sign", *common, image)
        self._run("attest", *common, "--type=slsaprovenance1", f"--predicate={provenance}", image)

    def _run(self, *arguments: str) -> None:
        # The key is encrypted with nothing: it is deleted when the release is made.
        environment = {**os.environ, "COSIGN_PASSWORD": ""}
        command = [str(self.cosign), *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise ReleaseError(f"cosign {arguments[0]} failed with exit code {done.returncode}: {done.stderr.strip()}")


def provenance(version: str, commit: str, base: str) -> Mapping[str, Any]:
    """Return the SLSA provenance (v1 predicate) of an image of a release.

    Args:
        version: Of the release.
        commit: Hash of the commit that the image was built from.
        base: Reference of its base image, with a digest if it has one; "" if it has none.
    """
    name, _, digest = base.partition("@sha256:")
    dependencies: list[Mapping[str, Any]] = [{"name": "source", "digest": {"gitCommit": commit}}]
    if base:
        dependencies.append({"name": "base", "uri": f"oci://{name}", **({"digest": {"sha256": digest}} if digest else {})})
    return {
        "buildDefinition": {
            "buildType": _BUILD_TYPE,
            "externalParameters": {"version": version},
            "resolvedDependencies": dependencies,
        },
        "runDetails": {"builder": {"id": _BUILDER}},
    }


def read_key(key: Path) -> bytes:
    """Return the private SSH key as PEM (PKCS #8); ask for its passphrase if it has one.

    Raises:
        ReleaseError: It cannot be read, or cannot sign images.
    """
    try:
        content = key.read_bytes()
        try:
            private = load_ssh_private_key(content, None)
        except TypeError:  # it has a passphrase
            private = load_ssh_private_key(content, getpass.getpass(f"Passphrase of {key}: ").encode())
    except (OSError, ValueError, EOFError) as error:
        raise ReleaseError(f"{key}: not a private SSH key that can sign images: {error}") from error
    if isinstance(private, Ed25519PrivateKey):
        # It signs with Ed25519ph, and verifies with Ed25519 (cosign 3.1).
        raise ReleaseError(f"{key}: cosign cannot verify images signed with an Ed25519 key; make one with `ssh-keygen -t ecdsa`")
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
