"""The images as they are built here: what is in them, what is not, and that they work under the narrowest rights."""

import json
import re
import socket
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import mpiop
from demonstration.operator_images import built_archives
from e2e.clusters import project
from e2e.jobs import EXAMPLES, LAUNCHER, phase, until_true
from e2e.kubectl import Kubectl, Obj
from imaging.catalogue import release_version, select
from mpiop.kube.resources import PODS

IMAGES = select(())
KEYS = re.compile(r"etc/ssh/ssh_host_|\.ssh/|id_(rsa|ecdsa|ed25519)$")
SETTINGS_OF_THE_BUILD = re.compile(r"^(etc/pip\.conf|run/secrets/.+|root/\.(cache|config|pip)/.+)$")
INSTALLERS = re.compile(r"bin/(pip[0-9.]*|gcc|cc|ld|make)$|python3[^/]*/(ensurepip|(site|dist)-packages/(pip|setuptools))$")


@dataclass(frozen=True)
class Archive:
    """What a docker-archive holds: the image's configuration, and the files that are there when all layers lie on each other."""

    config: Obj
    files: frozenset[str]
    hostname: bytes


def read_archive(path: Path) -> Archive:
    files: set[str] = set()
    hostname = b""
    with tarfile.open(path) as archive:

        def content(name: str) -> bytes:
            stream = archive.extractfile(name)
            assert stream is not None, name
            return stream.read()

        [image] = json.loads(content("manifest.json"))
        for name in image["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                for member in layer:
                    file = member.name.removeprefix("./")
                    whiteout = Path(file).name.startswith(".wh.")
                    gone = str(Path(file).with_name(Path(file).name.removeprefix(".wh."))) if whiteout else ""
                    files -= {each for each in files if whiteout and (each == gone or each.startswith(f"{gone}/"))}
                    files |= set() if whiteout else {file}
                    if file == "etc/hostname" and (stream := layer.extractfile(member)):
                        hostname = stream.read()
        return Archive(json.loads(content(image["Config"])), frozenset(files), hostname)


@pytest.fixture(scope="module")
def archives() -> dict[str, Archive]:
    """The images of the catalogue by name."""
    paths = {Path(path).stem: Path(path) for path in built_archives(*(image.name for image in IMAGES))}
    return {image.name: read_archive(paths[image.name]) for image in IMAGES}


EACH_IMAGE = pytest.mark.parametrize("name", [image.name for image in IMAGES])


@EACH_IMAGE
def test_nothing_of_the_building_machine_is_in_an_image(archives: dict[str, Archive], name: str) -> None:
    image = archives[name]
    assert not [file for file in image.files if SETTINGS_OF_THE_BUILD.search(file)]
    assert image.hostname.decode().strip() != socket.gethostname()
    variables = {variable.partition("=")[0].lower() for variable in image.config["config"].get("Env") or ()}
    assert not [each for each in variables if each.startswith(("pip_", "ssl_")) or each.endswith("_proxy")]


@EACH_IMAGE
def test_no_image_brings_keys(archives: dict[str, Archive], name: str) -> None:
    assert not [file for file in archives[name].files if KEYS.search(file)]


@EACH_IMAGE
def test_every_image_says_which_version_it_is(archives: dict[str, Archive], name: str) -> None:
    assert archives[name].config["config"]["Labels"]["org.opencontainers.image.version"] == release_version()


def test_an_image_that_comes_from_the_builders_cache_says_the_version_of_this_build(tmp_path: Path) -> None:
    for version in ("v1.2.3", "v1.2.4", release_version()):
        project("hack/images", "build", "--only=pi-mpich", f"--release-version={version}", f"--save={tmp_path}")
        labels = read_archive(tmp_path / "pi-mpich.tar").config["config"]["Labels"]
        assert labels["org.opencontainers.image.version"] == version


def test_the_operators_image_has_nothing_to_install_or_compile_with(archives: dict[str, Archive]) -> None:
    assert not [file for file in archives["operator"].files if INSTALLERS.search(file)]


def test_the_operators_image_takes_arguments_only_and_is_nobody(archives: dict[str, Archive]) -> None:
    config = archives["operator"].config["config"]
    assert config["Entrypoint"] == ["mpiop"]
    assert not config.get("Cmd")
    assert config["User"] == "65532:65532"


def test_the_agents_image_is_one_program(archives: dict[str, Archive]) -> None:
    assert {file.strip("./") for file in archives["agent"].files} == {"mpiop-agent"}
    assert archives["agent"].config["config"]["User"] == "65532:65532"


def test_the_operators_code_is_compiled_before(archives: dict[str, Archive]) -> None:
    """With a read-only root file system it could not be later, and each start would pay for it."""
    files = archives["operator"].files
    sources = [file for file in files if re.search(r"site-packages/mpiop/.*\.py$", file)]
    assert sources
    stems = {re.sub(r"__pycache__/([^/]+)\.cpython-\d+\.pyc$", r"\1.py", file) for file in files if file.endswith(".pyc")}
    assert not set(sources) - stems


def test_the_operator_runs_without_any_right(namespace: Kubectl) -> None:
    [image] = [image for image in IMAGES if image.name == "operator"]
    container = {
        "name": "operator",
        "image": image.reference(release_version()),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--version"],
        "securityContext": {
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "version"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    namespace.apply(pod)
    namespace.until_one(PODS, "version", lambda pod: phase(pod) == "Succeeded")
    assert namespace.run("logs", "version") == f"mpiop {mpiop.__version__}\n"


def test_the_example_runs_as_root_with_nothing_but_defaults(namespace: Kubectl) -> None:
    namespace.apply(yaml.safe_load((EXAMPLES / "pi" / "pi-root.yaml").read_text("utf-8")))
    until_true(namespace, "pi-root", "Succeeded")
    [launcher] = namespace.read_all(PODS, LAUNCHER)
    log = namespace.run("logs", launcher["metadata"]["name"])
    assert "rank 1 of 2 runs on pi-root-worker-1\npi is approximately 3.14159265" in log
