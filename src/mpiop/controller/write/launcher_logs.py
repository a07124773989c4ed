"""Reads the end of the log of a launcher that failed, before its Pod is gone; only if the operator has the right to (`pods/log`)."""

from collections.abc import Hashable
from typing import Final, Protocol, Self

import structlog

from mpiop.api.log_findings import finding
from mpiop.clock import Clock
from mpiop.controller.observe.launcher_failures import FailedContainer, LauncherFailures
from mpiop.controller.status.verdict import NO_WORDS, LastWords
from mpiop.controller.write.optional_permission import OptionalPermission
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, key_of

LINES: Final = 80
BYTES: Final = 2048
_READ_BYTES: Final = 64 * 1024
"""The rules for logs take some 20 ms for as much."""


class LogSource(Protocol):
    """The part of the client that reads logs."""

    def of_flow(self, flow: Hashable) -> Self:
        """Return a client whose requests wait with those of `flow`."""
        ...

    async def read_log(self, pod: Key, container: str, *, lines: int, max_bytes: int, previous: bool) -> str:
        """Return the end of the log of a container."""
        ...


class LauncherLogs:
    """Reads the last words of launchers."""

    def __init__(self, client: LogSource, clock: Clock) -> None:
        """Read with `client`."""
        self._client = client
        self._right = OptionalPermission(clock)
        self._log = structlog.get_logger(__name__)

    async def last_words(self, job: Key, failures: LauncherFailures) -> LastWords:
        """Return the last 2 KiB of the log of a container whose failure is new, and what they report; nothing if it cannot be read."""
        failed = failures.container if failures.new is not None else None
        if failed is None or self._right.wait_seconds(key_of(failed.pod).namespace):
            return NO_WORDS
        try:
            text = await self._read(job, failed)
        except KubeError as error:
            self._right.note(key_of(failed.pod).namespace, error)
            self._log.debug("log of a failed launcher not read", error=str(error))
            return NO_WORDS
        return LastWords(cleaned(text), finding(text))

    async def _read(self, job: Key, failed: FailedContainer) -> str:
        client, pod = self._client.of_flow(job), key_of(failed.pod)
        return await client.read_log(pod, failed.name, lines=LINES, max_bytes=_READ_BYTES, previous=failed.is_restarted)


def cleaned(text: str) -> str:
    """Return the end of `text`, at most `BYTES` of UTF-8, cut at a line end if possible, without control characters except tabs."""
    text = "".join(character for character in text if character in "\n\t" or character.isprintable()).strip()
    encoded = text.encode()
    if len(encoded) <= BYTES:
        return text
    end = encoded[-BYTES:].decode(errors="ignore")
    return end.partition("\n")[2] or end
