"""A release as it is made and as it is checked: pushed to a registry on loopback, and signed."""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

import mpiop
from e2e.clusters import ROOT
from e2e.neighbours import build_program
from releasing.signing import Signer, read_key

COPIED = ("agent", "charts", "deploy", "hack", "requirements", "src")
VERSION = mpiop.__version__


def answer(command: Sequence[str | Path], **options: object) -> str:
    """Return what a command that must succeed prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload] # of run
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on loopback, over HTTP."""
    crane = build_program("crane")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    folder = tmp_path_factory.mktemp("registry")
    with subprocess.Popen([crane, "registry", "serve", f"--address={address}", f"--disk={folder}"], stderr=subprocess.DEVNULL) as process:
        try:
            yield address
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, committed."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("CHANGELOG.md", "Dockerfile", ".dockerignore", ".gitignore", "LICENSE", "README.md", "pyproject.toml", "setup.cfg"):
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    git = ("git", "-C", str(folder), "-c", "user.name=e2e", "-c", "user.email=e2e@example.com")
    answer([*git, "init", "--quiet"])
    (folder / ".git/info/exclude").write_text(".venv\n")
    for arguments in (("add", "."), ("commit", "--quiet", "--message=release")):
        answer([*git, *arguments])
    return folder


def key_pair(folder: Path) -> Path:
    """Return a private SSH key; next to it are its public half and a list of the signers that are trusted."""
    key = folder / "key"
    answer(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", key])
    (folder / "signers").write_text(f"release@example.com {key.with_suffix('.pub').read_text()}")
    return key


@pytest.fixture(scope="module")
def released(checkout: Path, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release."""
    folder = tmp_path_factory.mktemp("release")
    options = [f"--output={folder / 'dist'}", f"--registry={registry}/team", "--plain-http", f"--key={key_pair(folder)}"]
    answer([checkout / "hack/release", VERSION, *options])
    return folder / "dist"


def test_yaml_and_chart_install_the_pushed_images_by_their_digests(released: Path, registry: str) -> None:
    [deployment] = [each for each in yaml.safe_load_all((released / "mpi-operator.yaml").read_text()) if each["kind"] == "Deployment"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    image = container["image"]
    crane = build_program("crane")
    operator, agent = (f"{registry}/team/mpi-operator{suffix}" for suffix in ("", "-agent"))
    pushed = [f"{name}@{answer([crane, 'digest', '--insecure', f'{name}:v{VERSION}']).strip()}" for name in (operator, agent)]
    assert image == pushed[0]
    assert f"--agent-image={pushed[1]}" in container["args"]
    assert json.loads(answer([crane, "config", "--insecure", image]))["config"]["User"] == "65532:65532"
    for helm in ("helm", "helm3"):
        rendered = answer([build_program(helm), "template", "mpi-operator", released / f"mpiop-{VERSION}.tgz"])
        assert f"image: {image}\n" in rendered.replace('"', "")
        assert f"--agent-image={pushed[1]}\n" in rendered.replace('"', "")


def purls(bill: Path) -> set[str]:
    """Return the package URLs of an SBOM."""
    return {each["purl"] for each in json.loads(bill.read_text())["components"] if "purl" in each}


def test_the_sboms_name_the_packages_of_debian_of_python_and_of_go(released: Path) -> None:
    assert any(purl.startswith("pkg:golang/golang.org/x/crypto@") for purl in purls(released / "agent.cdx.json"))
    components = purls(released / "operator.cdx.json")
    locked = re.findall(r"^([a-z0-9-]+)==([^ ;]+)", (ROOT / "requirements/runtime.txt").read_text(), re.MULTILINE)
    of_python = {
        purl.partition("@")[0].removeprefix("pkg:pypi/").replace("_", "-").lower() for purl in components if purl.startswith("pkg:pypi/")
    }
    assert {"aiohttp", "kubernetes", "msgspec", "structlog", "mpiop"} <= of_python <= {name for name, _ in locked} | {"mpiop"}
    assert any(purl.startswith("pkg:deb/debian/libc6@") for purl in components)


def test_the_sums_fit_and_their_signature_can_be_checked(released: Path) -> None:
    answer(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=released)
    named = {line.split("  ")[1] for line in (released / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in released.iterdir()} - {"SHA256SUMS", "SHA256SUMS.sig"}
    verify = ["ssh-keygen", "-Y", "verify", "-f", released.parent / "signers", "-I", "release@example.com", "-n", "mpiop"]
    verify += ["-s", released / "SHA256SUMS.sig"]
    answer(verify, input=(released / "SHA256SUMS").read_text())
    forged = subprocess.run(verify, input="0  operator.tar\n", capture_output=True, text=True, check=False)
    assert forged.returncode != 0


def test_the_images_are_signed_and_their_provenance_names_the_commit(released: Path, registry: str, checkout: Path, tmp_path: Path) -> None:
    crane, cosign = build_program("crane"), build_program("cosign")
    commit = answer(["git", "-C", checkout, "rev-parse", "HEAD"]).strip()
    other = tmp_path / "other.pub"
    other.write_bytes(Signer(cosign, tmp_path).import_key(read_key(key_pair(tmp_path))))
    for suffix in ("", "-agent"):
        name = f"{registry}/team/mpi-operator{suffix}"
        image = f"{name}@{answer([crane, 'digest', '--insecure', f'{name}:v{VERSION}']).strip()}"
        options = ["--insecure-ignore-tlog", "--allow-http-registry", image]
        answer([cosign, "verify", f"--key={released / 'cosign.pub'}", *options])
        attested = answer([cosign, "verify-attestation", f"--key={released / 'cosign.pub'}", "--type=slsaprovenance1", *options])
        statement = json.loads(base64.b64decode(json.loads(attested.splitlines()[0])["payload"]))
        assert statement["subject"][0]["digest"]["sha256"] == image.partition("@sha256:")[2]
        source, *others = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert source == {"name": "source", "digest": {"gitCommit": commit}}
        assert [each["name"] for each in others] == ([] if suffix else ["base"])
        forged = subprocess.run([cosign, "verify", f"--key={other}", *options], capture_output=True, text=True, check=False)
        assert forged.returncode != 0


def test_the_notes_are_the_changelog_s(released: Path) -> None:
    text = (released / "notes.md").read_text()
    assert text.startswith(f"# mpiop {VERSION}\n\n")
    assert "\n### " in text


def test_the_same_input_makes_the_same_images(tmp_path: Path) -> None:
    """The base included: nothing of the first build is left when the second begins."""
    first, second = (image_ids(tmp_path / name) for name in ("first", "second"))
    assert first == second


def image_ids(folder: Path) -> list[str]:
    """Build operator and agent with a cache of their own, and return the digests of their configurations, which name all layers."""
    environment = {**os.environ, "MPIOP_CACHE": str(folder / "cache"), "IMAGE_BUILDER": "buildah", "SOURCE_DATE_EPOCH": "1790000000"}
    answer([ROOT / "hack/images", "build", "--only=operator", "--only=agent", f"--save={folder}"], env=environment)
    return [json.loads(answer(["tar", "-xOf", folder / f"{name}.tar", "manifest.json"]))[0]["Config"] for name in ("operator", "agent")]
