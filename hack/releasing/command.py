"""The command line of `hack/release`."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import yaml

from imaging.catalogue import CATALOGUE, ROOT
from imaging.engines import EPOCH
from releasing import client, files, plugin, signing
from releasing.errors import ReleaseError

NAMESPACE: Final = "mpiop"
_FROM_SCRATCH: Final = frozenset(image.name for image in CATALOGUE if image.is_go)
_EPILOG = """\
It writes into the folder: mpi-operator.yaml (install with kubectl), mpiop-VERSION.tgz (the Helm chart), the wheel of mpiop, wheel and
sdist of mpiop-client (Python client and kubectl plug-in), kubectl-mpi_VERSION_linux_ARCH.tar.gz (the plug-in with Python and all
libraries) and kubectl-mpi.krew.yaml (its manifest for krew), operator.tar and agent.tar (the images), operator.cdx.json, agent.cdx.json
and kubectl-mpi.cdx.json (what is in them, CycloneDX), notes.md and SHA256SUMS; with --key also SHA256SUMS.sig. With --key all changes must
be committed, and the images are made of nothing built before (--fresh): what is signed is made of the commit.

With --client it writes only the files of mpiop-client and of kubectl-mpi, and SHA256SUMS.

With --registry the images are pushed, and YAML and chart name them by their digests. With --key as well, the images are signed there,
with a statement of how each was built (SLSA provenance): operator.provenance.json and agent.provenance.json. cosign.pub is the public key.

Check the files:    ssh-keygen -Y verify -f ALLOWED_SIGNERS -I SIGNER -n mpiop -s SHA256SUMS.sig <SHA256SUMS
Check an image:     cosign verify --key cosign.pub --insecure-ignore-tlog IMAGE@DIGEST
and its provenance: cosign verify-attestation --key cosign.pub --insecure-ignore-tlog --type slsaprovenance1 IMAGE@DIGEST"""


def main(arguments: Sequence[str]) -> int:
    """Run `hack/release` with `arguments`; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        release(options.root, options.version, options.output, options)
    except ReleaseError as error:
        print(f"release: error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"release: error: `{' '.join(map(str, error.cmd))}` failed with exit code {error.returncode}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/release", description="Make a release.", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="like 0.2.0; sources, chart, deploy/ and CHANGELOG.md must name it")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder, which is made anew (dist)")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--client", action="store_true", help="only mpiop-client and kubectl-mpi, without images, chart and YAML")
    parts.add_argument("--registry", default="", help="push the images there, like registry.example.com/team")
    parser.add_argument("--url", default="", help="folder from which krew downloads the archive, like https://example.com/mpiop/0.2.0")
    parser.add_argument("--plain-http", action="store_true", help="the registry speaks HTTP")
    parser.add_argument("--key", type=Path, help="private SSH key that signs SHA256SUMS and the pushed images; no service is asked")
    parser.add_argument("--fresh", action="store_true", help="build the images of nothing built before, as always with --key")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    return parser


def release(root: Path, version: str, output: Path, options: argparse.Namespace) -> None:
    """Make the files of a release.

    Raises:
        ReleaseError: The checkout is not that of `version`, or a signed release would not be that of its commit.
        CalledProcessError: A program failed, and has reported why.
    """
    files.check_version(root, version)
    key = signing.read_key(options.key) if options.key is not None and options.registry else None
    commit = _commit(root) if options.key is not None else ""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    environment = {**os.environ, EPOCH: str(_commit_seconds(root))}
    pushed = None
    if not options.client:
        pushed = _images(root, version, output, options, environment)
        _write_files(root, version, output, pushed and pushed.images)
    _write_client_files(root, version, output, options.url, environment)
    if commit and commit != _commit(root):
        raise ReleaseError(f"HEAD was {commit} when the release began, and is not any more; nothing was signed")
    if pushed is not None and key is not None:
        _say("signing the images")
        with TemporaryDirectory() as folder:
            signer = signing.Signer(_program(root, "cosign"), Path(folder), options.plain_http)
            (output / signing.PUBLIC_KEY).write_bytes(signer.import_key(key))
            for name, image in pushed.images._asdict().items():
                statement = output / f"{name}.provenance.json"
                base = "" if name in _FROM_SCRATCH else pushed.base
                statement.write_text(json.dumps(signing.provenance(version, commit, base), indent=2) + "\n", "utf-8")
                signer.sign(image, statement)
    (output / files.SUMS).write_text(files.checksums(output.iterdir()), "utf-8")
    if options.key is not None:
        _run("signing", ["ssh-keygen", "-q", "-Y", "sign", "-f", options.key, "-n", NAMESPACE, output / files.SUMS])
    _say(f"done: {output}")
    _say_how_to_install(version, output, has_operator=not options.client)


def _write_files(root: Path, version: str, output: Path, images: files.Images | None) -> None:
    """Write YAML, chart, notes, wheel and the lists of what is in the saved images."""
    manifest = (root / "deploy/v2beta1/mpi-operator.yaml").read_text("utf-8")
    (output / "mpi-operator.yaml").write_text(files.manifest(manifest, version, images) if images else manifest, "utf-8")
    (output / f"mpiop-{version}.tgz").write_bytes(files.chart(root / "charts/mpiop", images, _commit_seconds(root)))
    (output / "notes.md").write_text(files.notes((root / "CHANGELOG.md").read_text("utf-8"), version), "utf-8")
    _run(
        "building the wheel", [root / ".venv/bin/pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", output, root]
    )
    syft = _program(root, "syft")
    for name in files.Images._fields:
        archive, bill = output / f"{name}.tar", output / f"{name}.cdx.json"
        _run(f"writing {bill.name}", [syft, "scan", "--quiet", f"docker-archive:{archive}", f"--output=cyclonedx-json={bill}"])


def _write_client_files(root: Path, version: str, output: Path, url: str, environment: Mapping[str, str]) -> None:
    """Write wheel and sdist of mpiop-client, and the archive of kubectl-mpi with its manifest and the list of what is in it."""
    _say(f"building {client.NAME}")
    client.build(root, output, environment)
    archive = output / plugin.archive_name(version)
    with TemporaryDirectory() as folder:
        built = Path(folder) / plugin.NAME
        _say(f"building {archive.name}")
        plugin.build(root, output / client.wheel_name(version), built, environment)
        archive.write_bytes(files.pack(built, _commit_seconds(root)))
        made = plugin.manifest(version, archive, plugin.needed_glibc(built), url)
        (output / plugin.MANIFEST).write_text(yaml.safe_dump(made, sort_keys=False), "utf-8")
        scan = [str(_program(root, "syft")), "scan", "--quiet", f"dir:{built}", f"--output=cyclonedx-json={output / plugin.BILL}"]
        _run(f"writing {plugin.BILL}", scan)


def _say_how_to_install(version: str, output: Path, *, has_operator: bool) -> None:
    if has_operator:
        _say(f"install it: kubectl apply -f {output}/mpi-operator.yaml")
        _say(f"or: helm install mpi-operator {output}/mpiop-{version}.tgz --namespace mpi-operator --create-namespace")
    _say(f"install the tools: pipx install {output / client.wheel_name(version)}")
    _say(f"or: kubectl krew install --manifest={output / plugin.MANIFEST} --archive={output / plugin.archive_name(version)}")


class _Pushed(NamedTuple):
    images: files.Images
    base: str


def _images(root: Path, version: str, output: Path, options: argparse.Namespace, environment: Mapping[str, str]) -> _Pushed | None:
    """Build the images and save them; return their names with digests, and that of their base, if they were pushed."""
    command = [root / "hack/images", "push" if options.registry else "build", f"--release-version=v{version}", f"--save={output}"]
    command += [*(f"--only={name}" for name in files.Images._fields), *(("--fresh",) if options.fresh or options.key is not None else ())]
    if not options.registry:
        _run("building the images", command, environment)
        return None
    _say(f"building the images, and pushing them to {options.registry}")
    command += [f"--registry={options.registry}", *(("--plain-http",) if options.plain_http else ())]
    lines = (line.split() for line in _answer(command, environment).splitlines())
    names = {words[0]: words[1] for words in lines if len(words) == 2}  # noqa: PLR2004 - the others are paths of saved images
    images = files.Images(**{name: names[name] for name in files.Images._fields})
    for image in images:
        _say(f"pushed {image}")
    return _Pushed(images, names["base"])


def _commit(root: Path) -> str:
    """Return the hash of the commit that the checkout is, without any change.

    Raises:
        ReleaseError: Changes are not committed.
    """
    changes = _answer(["git", "-C", root, "status", "--porcelain", "--untracked-files=all"]).splitlines()
    if changes:
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        raise ReleaseError(f"a signed release states its commit, but there are changes that are not committed: {changes[0].strip()}{more}")
    return _answer(["git", "-C", root, "rev-parse", "HEAD"]).strip()


def _program(root: Path, name: str) -> Path:
    """Return the path of a Go program, which is built when it is first asked for."""
    return Path(_answer([root / "hack/cluster", "build", name]).partition("\t")[2].strip())


def _commit_seconds(root: Path) -> int:
    """Return the time of the last commit: the same commit makes the same files whenever it is released."""
    return int(_answer(["git", "-C", root, "log", "-1", "--format=%ct"]))


def _run(step: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
    _say(step)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)


def _answer(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment).stdout


def _say(line: str) -> None:
    print(f"release: {line}", file=sys.stderr, flush=True)
