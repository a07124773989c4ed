"""The commands of `hack/cluster`: each takes the cluster's layout and the parsed arguments and returns an exit code."""

import argparse
import dataclasses
import json
import os
import shlex
import subprocess
import time
from pathlib import Path

from embedded import control, images, packages
from embedded.down import destroy
from embedded.errors import ClusterError
from embedded.layout import Layout, cluster_names, layout_of
from embedded.locks import locked
from embedded.progress import Progress
from embedded.record import Options, Record, read_record
from embedded.status import report
from embedded.up import up

ENDS_OF_LOGS = 5


def run_up(layout: Layout, parsed: argparse.Namespace) -> int:
    """Make the cluster be up."""
    options = Options(**{field.name: getattr(parsed, field.name) for field in dataclasses.fields(Options)})
    progress = Progress()
    began = time.monotonic()
    with locked(layout.lock, lambda: progress.say(f"Waiting for another command on cluster {layout.name!r}")):
        up(layout, options, progress)
    suffix = "" if layout.name == "default" else f" --name {layout.name}"
    progress.say(f'Cluster {layout.name!r} is up after {time.monotonic() - began:.1f} s. To use it: eval "$(hack/cluster env{suffix})"')
    return 0


def run_down(layout: Layout, parsed: argparse.Namespace) -> int:
    """Remove the cluster, or all of them."""
    for one in [layout_of(name) for name in cluster_names()] if parsed.all else [layout]:
        began = time.monotonic()
        with locked(one.lock):
            found = destroy(one)
        print(f"Cluster {one.name!r} is gone after {time.monotonic() - began:.1f} s." if found else f"There is no cluster {one.name!r}.")
    return 0


def run_status(layout: Layout, parsed: argparse.Namespace) -> int:
    """Print the state of the cluster."""
    state = report(layout)
    if parsed.json:
        print(json.dumps(dataclasses.asdict(state)))
    else:
        print(state.table())
    return 0 if state.well else 1


def run_env(layout: Layout, parsed: argparse.Namespace) -> int:
    """Print shell exports."""
    del parsed
    _existing(layout)
    print(f"export KUBECONFIG={shlex.quote(str(layout.kubeconfig))}")
    print(f"export KUBECACHEDIR={shlex.quote(str(layout.root / 'kubectl-cache'))}")
    print(f'export PATH={shlex.quote(str(layout.bin))}:"$PATH"')
    return 0


def run_logs(layout: Layout, parsed: argparse.Namespace) -> int:
    """Show one log, or the ends of all."""
    _existing(layout, ready=False)
    files = sorted(layout.logs.glob("*.log"))
    if parsed.component:
        chosen = layout.log(parsed.component)
        if chosen not in files:
            raise ClusterError(f"no log of {parsed.component!r}; there are {', '.join(file.stem for file in files)}")
        files = [chosen]
    lines = "+1" if parsed.component else str(ENDS_OF_LOGS)
    return subprocess.run(["tail", "-n", lines, *(["-F"] if parsed.follow else []), *map(str, files)], check=False).returncode


def run_load_image(layout: Layout, parsed: argparse.Namespace) -> int:
    """Load image archives."""
    record = _existing(layout)
    for archive in parsed.archives:
        for name in images.load_archive(layout, record, Path(archive)):
            print(name)
    return 0


def run_exec(layout: Layout, parsed: argparse.Namespace) -> int:
    """Become a command inside the cluster."""
    command = control.enter_command(layout, parsed.arguments, network_only=parsed.network_only)
    path = f"{layout.bin}:{packages.SEARCH_PATH}"
    try:
        os.execvpe(command[0], command, {**os.environ, "PATH": path, "KUBECONFIG": str(layout.kubeconfig)})  # noqa: S606 - no shell
    except OSError as error:
        raise ClusterError(f"exec {command[0]}: {error.strerror}") from error


def _existing(layout: Layout, *, ready: bool = True) -> Record:
    record = read_record(layout)
    if record is None or (ready and not record.ready):
        raise ClusterError(f"no cluster {layout.name!r} that is up; start it with: hack/cluster up --name {layout.name}")
    return record
