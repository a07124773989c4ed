"""Passes standard input of `run` on: kubectl attaches to the launcher, and its `mpirun` passes the input to rank 0.

Without `-i`, only a file or a pipe is passed on. Exactly one job must read it once: not with arrays, retries or `--detach`.
"""

import os
import select
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import click

from mpiop.client.errors import InvalidError
from mpiop.client.job import Job
from mpiop.client.kubectl import kubectl_program
from mpiop.client.launcher_log import container_of
from mpiop.client.logs import is_running
from mpiop.kubectl.output import printable
from mpiop.kubectl.session import Session

_END_SECONDS: Final = 10.0
"""Errors of kubectl so soon before the end of the job are ignored: the program ended without reading everything."""


def is_passed_on(session: Session, wanted: bool | None, options: Mapping[str, Any]) -> bool:  # noqa: FBT001 - an option
    """Return whether the job gets standard input: as `wanted`, by default if it is a file or a pipe. A warning reports why not.

    Raises:
        InvalidError: It is wanted and cannot be passed on.
    """
    if wanted is False or (wanted is None and (not is_piped() or _unattended(options))):
        return False
    if (obstacle := _unattended(options) or _obstacle(session, options)) is None:
        return True
    if wanted:
        raise InvalidError(f"-i: standard input cannot be passed on: {obstacle}")
    click.echo(f"warning: standard input is not passed on: {obstacle}", err=True)
    return False


def _unattended(options: Mapping[str, Any]) -> str | None:
    """Return why this command does not stay with one job, or reads the input itself; None if it does neither."""
    if options["patch"] == "-":
        return "--patch - reads it"
    used = next((name for name in ("detach", "array", "dry_run") if options[name]), None)
    return used and f"leave out --{used.replace('_', '-')}"


def _obstacle(session: Session, options: Mapping[str, Any]) -> str | None:
    if budget := next((name for name in ("retries", "max_restarts") if options[name]), None):
        return f"a second attempt could not read it again; leave out --{budget.replace('_', '-')}"
    if shutil.which("kubectl") is None:
        return "kubectl is not in the PATH; install it"
    api = session.api()
    if not api.may("create", "", "pods/attach"):
        return f"you may not create pods/attach in namespace {api.namespace}; ask for that right"
    return None


def is_piped() -> bool:
    """Return whether standard input is a file or a pipe that has not ended."""
    try:
        descriptor = sys.stdin.fileno()
        found = os.fstat(descriptor)
    except (AttributeError, OSError, ValueError):  # it is closed, or not a file
        return False
    if stat.S_ISREG(found.st_mode):
        return found.st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    events = dict(poll.poll(0)).get(descriptor, 0)
    return stat.S_ISFIFO(found.st_mode) and (bool(events & select.POLLIN) or not events & select.POLLHUP)


@contextmanager
def attached(session: Session, job: Job) -> Generator[None]:
    """Pass standard input on to the launcher, if that runs; a warning reports if it did not arrive."""
    launcher = job.launcher
    if launcher is None or not is_running(launcher, container_of(launcher)):
        yield
        return
    target = [launcher["metadata"]["name"], f"--container={container_of(launcher)}"]
    options = replace(session, namespace=job.namespace).kubectl_options
    command = [kubectl_program(), "attach", "--stdin", "--quiet", *options, *target]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603 - kubectl, as the user could call it
    is_over = threading.Event()
    reporter = threading.Thread(target=_report, args=(process, is_over))
    reporter.start()
    try:
        yield
    finally:
        is_over.set()
        process.terminate()
        reporter.join()


def _report(process: "subprocess.Popen[bytes]", is_over: threading.Event) -> None:
    _, errors = process.communicate()
    if process.returncode and not is_over.wait(_END_SECONDS):
        why = printable(errors.decode(errors="replace").strip().rpartition("\n")[2])
        click.echo(f"warning: standard input did not arrive, or only a part of it: {why}", err=True)
