"""The command line of `hack/images`."""

import argparse
import os
import shlex
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from imaging import network
from imaging.base import Bases
from imaging.buildah import ENVIRONMENT
from imaging.building import Building
from imaging.cache import cache_folder, empty, locked, unfinished
from imaging.catalogue import AGENT_SUFFIX, CATALOGUE, DEFAULT_OPERATOR_REPOSITORY, Image, release_version, select
from imaging.console import Console
from imaging.errors import ImagesError
from imaging.finding import ENGINE_NAMES, find_engine
from imaging.process import Programs

_EPILOG = """\
docker, podman or buildah is used, whichever works; on Debian and Ubuntu, root gets buildah installed if there is none.
The base is BASE_IMAGE if that is set, else Debian's slim image from its registry, else the same made here of Debian's packages.
The variables IMAGE_NAME, RELEASE_VERSION, PLATFORMS, BASE_IMAGE and IMAGE_BUILDER are the defaults of their options."""


def main(arguments: Sequence[str]) -> int:
    """Run `hack/images` with `arguments`; return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console()
    for number in (signal.SIGINT, signal.SIGTERM):  # one way to be interrupted, in the background of a shell too, which ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    try:
        folder = cache_folder()
        if options.command == "clean":
            return _clean(folder, console)
        if options.command == "list":
            return _list(options)
        with locked(folder, console) as lock:
            _build(options, folder, Programs(console, folder / "logs", ENVIRONMENT, kept_open=(lock,)))
    except ImagesError as error:
        console.say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        console.say("interrupted; what was finished is kept, run it again to go on")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/images", description=__doc__, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build images", allow_abbrev=False)
    push = commands.add_parser("push", help="build images, copy them to a registry, and print how to install them", allow_abbrev=False)
    listing = commands.add_parser("list", help="print the names of the images", allow_abbrev=False)
    commands.add_parser("clean", help="remove everything that buildah and the base made here keep in the cache", allow_abbrev=False)
    for command in (build, push, listing):
        command.add_argument(
            "--only", action="append", default=[], metavar="NAME", help=f"of {', '.join(i.name for i in CATALOGUE)}; repeatable"
        )
        command.add_argument("--image-name", default=_variable("IMAGE_NAME"), help=f"the operator's name ({DEFAULT_OPERATOR_REPOSITORY})")
        command.add_argument("--release-version", default=_variable("RELEASE_VERSION"), help=f"the operator's tag ({release_version()})")
    for command in (build, push):
        command.add_argument("--platforms", default=_variable("PLATFORMS"), help="like linux/amd64,linux/arm64 (this machine's)")
        command.add_argument("--base-image", default=_variable("BASE_IMAGE"), help="base of all images")
        command.add_argument(
            "--builder", default=_variable("IMAGE_BUILDER"), help=f"one of {', '.join(ENGINE_NAMES)} (the first that works)"
        )
        command.add_argument(
            "--fresh", action="store_true", help="use nothing built or pulled before: new packages of Debian and of Python"
        )
        command.add_argument(
            "--save", type=Path, metavar="DIR", help="write DIR/NAME.tar, a docker-archive, of each; their paths are printed"
        )
    push.add_argument("--registry", required=True, help="like registry.example.com/team; log in before with your builder's `login`")
    push.add_argument("--plain-http", action="store_true", help="the registry speaks HTTP")
    return parser


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def _version(options: argparse.Namespace) -> str:
    return options.release_version or release_version()


def _images(options: argparse.Namespace) -> tuple[Image, ...]:
    repository = options.image_name or DEFAULT_OPERATOR_REPOSITORY
    if ":" in repository.rpartition("/")[2] or "@" in repository:
        raise ImagesError(f"--image-name {repository}: must be a name without tag or digest; the tag is --release-version")
    names = {"operator": repository, "agent": f"{repository}{AGENT_SUFFIX}"}
    return tuple(replace(image, repository=names.get(image.name, image.repository)) for image in select(options.only))


def _list(options: argparse.Namespace) -> int:
    for image in _images(options):
        print(image.name, image.reference(_version(options)))
    return 0


def _clean(folder: Path, console: Console) -> int:
    with locked(folder, console):
        empty(folder)
    console.say(f"removed what was in {folder}")
    return 0


def install_command(operator: str, agent: str) -> Sequence[str]:
    """Return the command that installs two images, which are named by their digests."""
    named = {"image": operator.split("@"), "agent.image": agent.split("@")}
    values = [f"{path}.{name}={part}" for path, parts in named.items() for name, part in zip(("repository", "digest"), parts, strict=True)]
    command = ("helm", "install", "mpi-operator", "charts/mpiop", "--namespace", "mpi-operator", "--create-namespace", "--wait")
    return (*command, *(f"--set={value}" for value in values))


def _build(options: argparse.Namespace, folder: Path, programs: Programs) -> None:
    console = programs.console
    platforms = tuple(platform.strip() for platform in options.platforms.split(",") if platform.strip())
    if options.save and len(platforms) > 1:
        raise ImagesError("--save writes one platform; name one in --platforms")
    images = _images(options)
    engine = find_engine(folder, programs, desired=options.builder)
    with unfinished(folder) as was_interrupted, network.secrets() as secrets:
        if was_interrupted:
            engine.discard_leftovers()
        base = Bases(engine, programs, folder, platforms, fresh=options.fresh).choose(options.base_image)
        building = Building(engine, base, _version(options), secrets, platforms, uses_cache=not options.fresh)
        pushed = dict[str, str]()
        if options.command == "push":
            print("base", base, flush=True)
        for number, image in enumerate(images, start=1):
            console.say(f"[{number}/{len(images)}] {building.reference(image)}: {building.build(image)}")
            if options.save:
                print(building.save(image, options.save), flush=True)
            if options.command == "push":
                pushed[image.name] = building.push(image, options.registry, is_plain=options.plain_http)
                print(image.name, pushed[image.name], flush=True)
    if {"operator", "agent"} <= pushed.keys():
        console.say(f"install exactly these: {shlex.join(install_command(pushed['operator'], pushed['agent']))}")
    console.say(f"see them with: {engine.command_line()} images")
