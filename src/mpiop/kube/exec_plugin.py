"""Credential plug-ins of a kubeconfig (`users[].user.exec`): run, checked, and kept until they expire.

Source: client.authentication.k8s.io/v1, ExecCredential.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from mpiop.clock import parse_time
from mpiop.kube.answers import NOT_JSON
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import ClientCertificate
from mpiop.kube.tokens import Credential

TIMEOUT_SECONDS = 60.0
EARLY = timedelta(seconds=10)
"""A credential is renewed this much before it expires, so that it is still good when it arrives."""

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """How to run the plug-in.

    Attributes:
        command: Program; with a slash and relative, it was made absolute by the kubeconfig's place.
        args: Its arguments.
        env: Added to our environment.
        api_version: Version of ExecCredential that it speaks.
        install_hint: Shown when the program is missing.
        cluster: `spec.cluster` for the plug-in, when it asked for it (provideClusterInfo).
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    api_version: str = API_VERSIONS[0]
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None


class ExecPlugin:
    """Gives the plug-in's credential; many requests at once run it once."""

    def __init__(self, config: ExecConfig, wall_clock: Callable[[], datetime]) -> None:
        """Run nothing yet.

        Args:
            config: What to run.
            wall_clock: The time that `expirationTimestamp` is compared with, aware.
        """
        self._config = config
        self._wall_clock = wall_clock
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: datetime | None = None

    async def current(self) -> Credential:
        """Return the credential, from the plug-in when there is none or it expires.

        Raises:
            ConfigError: The plug-in failed: we never go on without credentials.
        """
        async with self._lock:
            if self._credential is None or (self._expires is not None and self._wall_clock() >= self._expires - EARLY):
                await self._run()
            return self._credential or Credential()

    async def refresh(self, failed: Credential) -> bool:
        """Run the plug-in again, unless somebody did since `failed` was given out."""
        async with self._lock:
            if self._credential == failed:
                await self._run()
        return True

    async def _run(self) -> None:
        answer = await self._ask()
        if answer.get("kind") != "ExecCredential" or answer.get("apiVersion") != self._config.api_version:
            raise self._error(f"its answer is no ExecCredential of {self._config.api_version}")
        status: Mapping[str, Any] = answer.get("status") or {}
        self._credential = self._parse(status)
        expiry = status.get("expirationTimestamp")
        self._expires = parse_time(str(expiry)) if expiry else None

    def _parse(self, status: Mapping[str, Any]) -> Credential:
        token = str(status.get("token") or "").strip()
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if bool(certificate) != bool(key):
            raise self._error("it gave only one of clientCertificateData and clientKeyData")
        if not token and not certificate:
            raise self._error("it gave neither a token nor a client certificate")
        return Credential(token, ClientCertificate(str(certificate), str(key)) if certificate else None)

    async def _ask(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._config.cluster is not None:
            spec["cluster"] = self._config.cluster
        question = {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, **self._config.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(question).decode()}
        process = await self._started(environment)
        output, complaint = await self._finished(process)
        if process.returncode:
            raise self._error(f"exit code {process.returncode}: {complaint.decode(errors='replace')[-500:].strip() or 'no message'}")
        try:
            answer: Any = msgspec.json.decode(output)
        except NOT_JSON as error:
            raise self._error(f"its answer is not JSON: {error}") from error
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}

    async def _started(self, environment: Mapping[str, str]) -> Process:
        """Start the plug-in in a session of its own, so that what it starts can be ended with it."""
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                self._config.command,
                *self._config.args,
                env=environment,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except OSError as error:
            raise self._error(" ".join(f"{error} {self._config.install_hint}".split())) from error
        except asyncio.CancelledError:
            # Cancelled while it starts a process, asyncio may wait for its end for ever; so let it start, then end it.
            await _end(await starting)
            raise

    async def _finished(self, process: Process) -> tuple[bytes, bytes]:
        """Return what the plug-in wrote to stdout and stderr."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await process.communicate()
        except TimeoutError as error:
            raise self._error(f"it did not end within {TIMEOUT_SECONDS:.0f} s") from error
        finally:
            await _end(process)

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"credential plug-in {self._config.command}: {what}")


async def _end(process: Process) -> None:
    """End `process` and all that it started: a grandchild would hold the pipes open."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
