"""What a release is made of, without its image."""

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import mpiop
from fakes.programs import executable
from imaging.base import REGISTRY_BASE
from imaging.catalogue import ROOT
from releasing import files, plugin, plugin_program, signing
from releasing.command import main
from releasing.errors import ReleaseError

IMAGES = files.Images(
    *(f"registry.example.com/team/mpi-operator{suffix}@sha256:{digit * 64}" for suffix, digit in (("", "0"), ("-agent", "1")))
)
CHANGELOG = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0 - 2026-11-27\n\n- first\n\n## 0.0.9 - 2026-11-20\n\n- before\n"


def chart(images: files.Images | None) -> dict[str, bytes]:
    """Return the files of the packed chart, which is the same each time."""
    made = files.chart(ROOT / "charts/mpiop", images, 1_800_000_000)
    assert made == files.chart(ROOT / "charts/mpiop", images, 1_800_000_000)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        return {name: stream.read() for name in archive.getnames() if (stream := archive.extractfile(name))}


def test_a_checkout_of_another_version_is_refused_with_what_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["9.9.9", f"--output={tmp_path}"]) == 1
    said = capsys.readouterr().err
    assert """src/mpiop/__init__.py lacks '__version__ = "9.9.9"'""" in said
    assert "CHANGELOG.md lacks '## 9.9.9 -'" in said


def test_all_files_of_the_checkout_name_the_version() -> None:
    files.check_version(ROOT, mpiop.__version__)


def test_the_notes_are_the_section_of_the_changelog() -> None:
    assert files.notes(CHANGELOG, "0.1.0") == "# mpiop 0.1.0\n\n- first\n"
    assert files.notes(CHANGELOG, "0.0.9") == "# mpiop 0.0.9\n\n- before\n"


def test_the_manifest_names_the_images_by_their_digests() -> None:
    text = (ROOT / "deploy/v2beta1/mpi-operator.yaml").read_text("utf-8")
    made = files.manifest(text, mpiop.__version__, IMAGES)
    [deployment] = [each for each in yaml.safe_load_all(made) if each["kind"] == "Deployment"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == IMAGES.operator
    assert f"--agent-image={IMAGES.agent}" in container["args"]


def test_the_chart_names_the_images_by_their_digests() -> None:
    made = chart(IMAGES)
    assert "mpiop/Chart.yaml" in made
    values = yaml.safe_load(made["mpiop/values.yaml"])
    assert f"{values['image']['repository']}@{values['image']['digest']}" == IMAGES.operator
    assert f"{values['agent']['image']['repository']}@{values['agent']['image']['digest']}" == IMAGES.agent


def test_without_images_the_chart_stays_as_it_is() -> None:
    assert chart(None)["mpiop/values.yaml"] == (ROOT / "charts/mpiop/values.yaml").read_bytes()


def test_values_that_look_otherwise_are_not_guessed_at() -> None:
    with pytest.raises(ReleaseError, match="is not there once"):
        files.values("image: {}\n", IMAGES)


def test_checksums_have_the_form_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"a")
    lines = files.checksums(tmp_path.iterdir()).splitlines()
    assert [line.split("  ")[1] for line in lines] == ["a", "b"]
    assert lines[1].startswith("e3b0c44298fc1c14")


def test_the_provenance_names_version_commit_and_base() -> None:
    base = "docker.io/library/debian:bookworm-slim"
    made = signing.provenance("0.1.0", "c" * 40, f"{base}@sha256:{'0' * 64}")
    assert made["buildDefinition"]["externalParameters"] == {"version": "0.1.0"}
    assert made["buildDefinition"]["resolvedDependencies"] == [
        {"name": "source", "digest": {"gitCommit": "c" * 40}},
        {"name": "base", "uri": f"oci://{base}", "digest": {"sha256": "0" * 64}},
    ]
    local = signing.provenance("0.1.0", "c" * 40, "localhost/mpiop-base:bookworm")
    assert local["buildDefinition"]["resolvedDependencies"][1] == {"name": "base", "uri": "oci://localhost/mpiop-base:bookworm"}

    assert [each["name"] for each in signing.provenance("0.1.0", "c" * 40, "")["buildDefinition"]["resolvedDependencies"]] == ["source"]


def git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A committed checkout, of which the programs do nothing but write their arguments into `asked`."""
    folder, asked = tmp_path / "checkout", tmp_path / "asked"
    for name in ("charts/mpiop", "deploy/v2beta1"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "src/mpiop").mkdir(parents=True)
    shutil.copy(ROOT / "src/mpiop/__init__.py", folder / "src/mpiop")
    for name in ("LICENSE", "pyproject.toml", "setup.cfg"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## {mpiop.__version__} - 2026-11-27\n\n- first\n")
    lines = "".join(f"echo {name} {image}\n" for name, image in (("base", REGISTRY_BASE), *IMAGES._asdict().items()))
    scripts = {
        "hack/images": lines,
        "hack/cluster": f'echo "$2\t{folder}/program"\n',
        ".venv/bin/pip": "",
        ".venv/bin/python": "",
        ".venv/plugin/bin/python": PYINSTALLER,
        "program": COSIGN,
        "hack/setup": "",
    }
    for name, text in scripts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        executable(folder / name, f'#!/bin/sh\necho {name} "$@" >>{asked}\n{text}')
    for arguments in (("init", "--quiet"), ("add", "--force", "."), ("commit", "--quiet", "--message=a")):
        git(folder, *arguments)
    return folder


COSIGN = """\
for word in "$@"; do case $word in --output-key-prefix=*) touch "${word#*=}.pub"; esac; done
"""

PYINSTALLER = """\
for word in "$@"; do case $word in --distpath=*) folder=${word#*=}/kubectl-mpi; mkdir "$folder"; esac; done
[ -z "$folder" ] || printf '\\0GLIBC_2.9\\0GLIBC_2.34' >"$folder/kubectl-mpi"
"""


def release(checkout: Path, *, is_signed: bool = True) -> tuple[int, str]:
    """Return the exit code, and what was asked of the programs."""
    key, asked = checkout.parent / "key", checkout.parent / "asked"
    key.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    key.chmod(0o600)
    options = [f"--root={checkout}", f"--output={checkout.parent / 'dist'}", "--registry=registry.example.com/team"]
    code = main([mpiop.__version__, *options, *([f"--key={key}"] if is_signed else [])])
    return code, asked.read_text() if asked.exists() else ""


def dependencies(checkout: Path, name: str) -> list[str]:
    statement = json.loads((checkout.parent / f"dist/{name}.provenance.json").read_text())
    return [each["name"] for each in statement["buildDefinition"]["resolvedDependencies"]]


@pytest.mark.parametrize("is_signed", [True, False])
def test_only_images_that_were_built_for_it_are_signed(checkout: Path, *, is_signed: bool) -> None:
    code, asked = release(checkout, is_signed=is_signed)
    [build] = [line for line in asked.splitlines() if line.startswith("hack/images")]
    assert (code, "--fresh" in build, "program sign " in asked) == (0, is_signed, is_signed)
    if is_signed:
        assert (dependencies(checkout, "operator"), dependencies(checkout, "agent")) == (["source", "base"], ["source"])


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new"])
def test_a_checkout_with_changes_is_not_signed(checkout: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    with (checkout / name).open("a") as file:
        file.write("changed\n")
    assert release(checkout) == (1, "")
    assert re.search(rf"changes that are not committed: (M|\?\?) {name}$", capsys.readouterr().err, re.MULTILINE)
    assert release(checkout, is_signed=False)[0] == 0


@pytest.mark.parametrize("change", ["echo >new", "git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m b"])
def test_a_checkout_that_changes_meanwhile_is_not_signed(checkout: Path, change: str) -> None:
    with (checkout / ".venv/bin/pip").open("a") as file:
        file.write(f"cd {checkout} && {change}\n")
    git(checkout, "commit", "--quiet", "--all", "--message=b")
    code, asked = release(checkout)
    assert (code, "program sign " in asked) == (1, False)
    assert not (checkout.parent / "dist/SHA256SUMS.sig").exists()


def test_a_key_that_cannot_sign_images_is_refused_before_anything_is_signed(tmp_path: Path) -> None:
    key = tmp_path / "release"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    with pytest.raises(ReleaseError, match="ssh-keygen -t ecdsa"):
        signing.read_key(key)
    key.write_text("no key", "utf-8")
    with pytest.raises(ReleaseError, match="not a private SSH key"):
        signing.read_key(key)


@pytest.mark.parametrize("name", ["Dockerfile", "examples/v2beta1/pi/Dockerfile"])
def test_base_images_are_pinned_by_their_digests(name: str) -> None:
    bases = re.findall(r"^ARG BASE_IMAGE=(\S+)$", (ROOT / name).read_text("utf-8"), re.MULTILINE)
    assert bases == [REGISTRY_BASE]
    assert re.search(r"@sha256:[0-9a-f]{64}$", REGISTRY_BASE)


def test_the_client_alone_needs_no_image(checkout: Path) -> None:
    output = checkout.parent / "dist"
    assert main([mpiop.__version__, f"--root={checkout}", f"--output={output}", "--client", "--url=https://example.com/1/"]) == 0
    assert "hack/images" not in (checkout.parent / "asked").read_text()
    [archive] = output.glob("*.tar.gz")
    assert {path.name for path in output.iterdir()} == {archive.name, "kubectl-mpi.krew.yaml", "SHA256SUMS"}
    spec = yaml.safe_load((output / "kubectl-mpi.krew.yaml").read_text())["spec"]
    assert spec["platforms"][0]["uri"] == f"https://example.com/1/{archive.name}"
    assert spec["platforms"][0]["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert "glibc 2.34 or newer" in spec["caveats"]


def test_the_archive_is_the_same_each_time_and_has_no_links(tmp_path: Path) -> None:
    """An archive with links is refused by krew."""
    folder = tmp_path / "kubectl-mpi"
    folder.mkdir()
    (folder / "kubectl-mpi").write_text("program")
    (folder / "kubectl-mpi").chmod(0o700)
    (folder / "library").symlink_to("kubectl-mpi")
    packed = files.pack(folder, 1_800_000_000)
    assert packed == files.pack(folder, 1_800_000_000)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = {member.name: (member.isreg(), member.mode) for member in archive.getmembers()}
    assert members == {"kubectl-mpi/kubectl-mpi": (True, 0o755), "kubectl-mpi/library": (True, 0o755)}


def test_an_archive_for_another_architecture_is_refused_with_those_that_can_be_built() -> None:
    assert plugin.architecture("aarch64") == "arm64"
    with pytest.raises(ReleaseError, match="cannot be built on riscv64; build it on one of x86_64, aarch64"):
        plugin.architecture("riscv64")


SYSTEM = "/etc/ssl/certs/ca-certificates.crt"


@pytest.mark.parametrize(
    ("before", "is_file", "after"),
    [
        ({"LD_LIBRARY_PATH": "/archive", "_PYI_ARCHIVE_FILE": "/archive/a", "A": "a"}, False, {"A": "a"}),
        ({"LD_LIBRARY_PATH": "/archive", "LD_LIBRARY_PATH_ORIG": "/opt/lib"}, False, {"LD_LIBRARY_PATH": "/opt/lib"}),
        ({}, True, {"SSL_CERT_FILE": SYSTEM}),
        ({"SSL_CERT_FILE": "/ca"}, True, {"SSL_CERT_FILE": "/ca"}),
        ({"SSL_CERT_DIR": "/cas"}, True, {"SSL_CERT_DIR": "/cas"}),
    ],
    ids=[
        "a child loads its own libraries",
        "the user's library path is back",
        "the system's authorities",
        "the user's",
        "the user's folder",
    ],
)
def test_the_environment_of_the_program_in_the_archive(before: dict[str, str], after: dict[str, str], *, is_file: bool) -> None:
    plugin_program.set_environment(before, lambda _: is_file)
    assert before == after
