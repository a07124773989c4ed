"""Runs a kubeconfig's credential plug-in as client-go 1.36 does, but keeps what it prints for the error (docs/adr/0025-kubeconfig.md).

Source: client.authentication.k8s.io/v1, ExecCredential.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from mpiop.kube.errors import ConfigError

PLUGIN_SECONDS = 60.0
"""A plug-in that nobody watches is ended after this time, with all that it started."""

_MOST_BYTES: Final = 1000
"""Of what the plug-in printed, from its end."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The `exec` of a user; calling it runs the program and returns the `status` of its answer.

    Attributes:
        command: Its path, absolute if it has a slash, else searched in $PATH.
        arguments: After the command.
        environment: In addition to ours.
        api_version: Of the ExecCredential that it reads and prints.
        interactive_mode: `Never`, `IfAvailable` or `Always`.
        install_hint: Where users get it.
        cluster: Value of `spec.cluster`; empty leaves it out.
    """

    command: str
    arguments: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    api_version: str
    interactive_mode: str
    install_hint: str
    cluster: Mapping[str, Any]

    def __call__(self) -> Mapping[str, Any]:
        """Run it.

        Raises:
            ConfigError: It is missing, fails, or prints no credential; the message has what it printed to stderr.
        """
        has_terminal = os.isatty(0)
        if self.interactive_mode == "Always" and not has_terminal:
            raise self._error("needs a terminal for its questions (interactiveMode: Always), and standard input is not one")
        is_interactive = has_terminal and self.interactive_mode != "Never"
        spec: dict[str, Any] = {"interactive": is_interactive} | ({"cluster": self.cluster} if self.cluster else {})
        info = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}, default=str)  # YAML reads dates
        environment = {**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": info}
        with tempfile.TemporaryFile() as errors:  # a file never fills up, and a daemon that the plug-in leaves behind may keep it open
            code, output = self._run(environment, errors, is_interactive=is_interactive)
            if code != 0:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - _MOST_BYTES))
                printed = " ".join(errors.read().decode(errors="replace").split())
                how = f"did not end within {PLUGIN_SECONDS:g} s" if code is None else f"failed with exit code {code}"
                raise self._error(f"{how}: {printed or 'see what it printed, if anything'}")
        return self._status(output)

    def _run(self, environment: Mapping[str, str], errors: IO[bytes], *, is_interactive: bool) -> tuple[int | None, bytes]:
        """Return the exit code, None after too long a time, and the standard output.

        A plug-in may print a link to follow: at a terminal, the user sees that at once and has time.
        """
        program = shutil.which(self.command)
        if program is None:
            raise self._error(f"is not installed, or not executable; install it{': ' if self.install_hint else ''}{self.install_hint}")
        if not Path(program).is_absolute():  # as Go: an empty element of $PATH, or `.`, is the folder that the user happens to be in
            raise self._error(f"is in the current folder only ({program}); install it into a folder of $PATH, which is absolute")
        is_watched = is_interactive or sys.stderr.isatty()  # a notebook is none, whatever it was started from
        try:
            process = subprocess.Popen(  # noqa: S603 - the kubeconfig names it
                [program, *self.arguments],
                env=environment,
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_watched else errors,
                start_new_session=not is_watched,
            )
        except (OSError, ValueError) as error:
            raise self._error(f"cannot be run: {error}") from error
        with process:
            try:
                output, _ = process.communicate(timeout=None if is_watched else PLUGIN_SECONDS)
            except BaseException as error:
                with suppress(ProcessLookupError):
                    process.kill() if is_watched else os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    return None, b""
                raise
        return process.returncode, output

    def _status(self, output: bytes) -> Mapping[str, Any]:
        try:
            answer = json.loads(output)
            kind, version, status = answer["kind"], answer["apiVersion"], dict[str, Any](answer["status"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise self._error(f"printed what is not an ExecCredential: {type(error).__name__}: {error}") from error
        if (kind, version) != ("ExecCredential", self.api_version):
            raise self._error(f"printed {kind} of {version}, but the kubeconfig demands an ExecCredential of {self.api_version}")
        if bool(status.get("clientCertificateData")) != bool(status.get("clientKeyData")):
            raise self._error("gave only one of clientCertificateData and clientKeyData")
        if not str(status.get("token") or "").strip() and not status.get("clientCertificateData"):
            raise self._error("gave neither a token nor a client certificate")
        return status

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"credential plug-in {self.command} {' '.join(what.split())}")
