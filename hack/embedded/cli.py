"""The command line of `hack/cluster`."""

import argparse
import os
import platform
import sys
from typing import TypeAlias

from embedded import build, commands, faults, interrupts, machine, packages, parts
from embedded.errors import ClusterError
from embedded.layout import layout_of
from embedded.progress import Progress

INTERRUPTED = 130
Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 typeshed has no public name for it


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parsed = build_parser().parse_args(arguments)
    interrupts.install()
    try:
        machine.check_system(platform.system(), platform.machine(), os.geteuid())
        result: int = parsed.run(layout_of(parsed.name), parsed)
        sys.stdout.flush()
    except ClusterError as error:
        print(f"hack/cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"hack/cluster: {parsed.command} was interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full or read-only disk, for one; the message names the file
        print(f"hack/cluster: {parsed.command}: {error}", file=sys.stderr)
        return 1
    return result


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; each command's function is its default `run`."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default="default", help="which cluster (default: %(default)s)")
    description = "A Kubernetes of one or two nodes on this machine, from package registries alone."
    parser = argparse.ArgumentParser(prog="hack/cluster", description=description)
    verbs = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    _add_life(verbs, common)
    _add_views(verbs, common)
    _add_faults(verbs, common)
    return parser


def _add_life(verbs: Verbs, common: argparse.ArgumentParser) -> None:
    start = verbs.add_parser("up", parents=[common], help="make the cluster be up; builds what is missing, cleans up after a crash")
    start.add_argument("--kwok", dest="simulated_nodes", type=_count, default=0, metavar="N", help="add N simulated nodes")
    real = start.add_mutually_exclusive_group()
    real.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="how many real nodes (default: %(default)s)")
    real.add_argument("--control-plane-only", action="store_true", help="no real node: no kubelet, no containers")
    start.add_argument("--feature-gates", default="", metavar="GATES", help="for all components, for example A=true,B=false")
    start.add_argument("--runtime-config", default="", metavar="CONFIG", help="API versions for the API server, for example api/beta=true")
    start.add_argument("--admission-plugins", default="", metavar="NAMES", help="of the API server, beside its own and NodeRestriction")
    start.add_argument("--audit", action="store_true", help="log every request to the API server (see: logs audit)")
    start.set_defaults(run=commands.run_up)

    stop = verbs.add_parser("down", parents=[common], help="remove the cluster without a trace; after a crash too")
    stop.add_argument("--all", action="store_true", help="remove every cluster that has a state folder")
    stop.set_defaults(run=commands.run_down)


def _add_views(verbs: Verbs, common: argparse.ArgumentParser) -> None:
    status = verbs.add_parser("status", parents=[common], help="say how components and nodes are; exit code 1 when not well")
    status.add_argument("--json", action="store_true", help="for programs")
    status.set_defaults(run=commands.run_status)

    verbs.add_parser("env", parents=[common], help='print exports, for: eval "$(hack/cluster env)"').set_defaults(run=commands.run_env)

    logs = verbs.add_parser("logs", parents=[common], help="show the log of a component, or the ends of all logs")
    logs.add_argument("component", nargs="?")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as the log grows")
    logs.set_defaults(run=commands.run_logs)

    load = verbs.add_parser("load-image", parents=[common], help="load images from docker or OCI archives")
    load.add_argument("archives", nargs="+", metavar="FILE")
    load.set_defaults(run=commands.run_load_image)

    inside = verbs.add_parser("exec", parents=[common], help="run a command of the host inside the cluster's namespaces")
    inside.add_argument("--network-only", action="store_true", help="keep the host's files and processes in view")
    inside.add_argument("arguments", nargs="+", metavar="COMMAND")
    inside.set_defaults(run=commands.run_exec)

    prepare = verbs.add_parser("build", parents=[common], help="build programs into the cache, and do no more")
    prepare.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts.PARTS)} (default: what a real node needs)")
    prepare.set_defaults(run=lambda _, parsed: run_build(parsed))


def run_build(parsed: argparse.Namespace) -> int:
    """Build the named parts and print where their programs are."""
    names = tuple(parts.find_part(name).name for name in parsed.parts) or (*parts.CONTROL_PLANE, *parts.NODE)
    progress = Progress()
    packages.install(packages.missing_packages(packages.BUILD), progress)
    build.build(names, progress)
    for name, path in build.programs_of(names).items():
        print(f"{name}\t{path}")
    return 0


def _add_faults(verbs: Verbs, common: argparse.ArgumentParser) -> None:
    for name, text in (
        ("restart", "end a component in order and start it with the same arguments"),
        ("stop", "end a component in order and leave it so"),
        ("start", "start a component that ended"),
        ("pause", "freeze a component (SIGSTOP)"),
        ("resume", "let a frozen component go on (SIGCONT)"),
    ):
        verb = verbs.add_parser(name, parents=[common], help=text)
        verb.add_argument("component")
        if name in {"restart", "stop"}:
            verb.add_argument("--kill", action="store_true", help="SIGKILL instead of SIGTERM")
        verb.set_defaults(run=faults.run)


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 10_000:  # noqa: PLR2004 what the address block of simulated pods and etcd bear
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 10000")
    return number
