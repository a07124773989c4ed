"""Ranks that a function was sent to: each job ends as soon as it is made, with a log."""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fakes.client_api import FakeApi, pod, stored
from mpiop.client.api import Object
from mpiop.client.lines import RAISED, RESULT, lines

Log: TypeAlias = Callable[[bytes], Sequence[str]]
"""Returns the lines that are printed where the key of the call is known."""


def world(size: int) -> str:
    """Return a module `mpi4py.MPI` for rank 0 of `size`, whose neighbours do the same."""
    return f"""
import os, time

time.sleep = lambda seconds: None


class COMM_WORLD:
    rank, size = 0, {size}
    bcast = staticmethod(lambda value: value)
    gather = staticmethod(lambda result: [result] * {size})
    Abort = staticmethod(os._exit)
"""


def printed(results: Sequence[bytes], *, run: str = "0" * 16) -> Log:
    """Return a log with each of the results, by rank."""

    def log(key: bytes) -> list[str]:
        ranks = len(results)
        return [line for rank, result in enumerate(results) for line in lines(key, RESULT, f"{run}:{rank}/{ranks}", result)]

    return log


def raised(rank: int, trace: str, *, run: str = "0" * 16) -> Log:
    """Return a log with what a rank of two raised."""
    return lambda key: list(lines(key, RAISED, f"{run}:{rank}/2", trace.encode()))


class Ranks(FakeApi):
    """Finds the key of a call among its files, as the ranks do."""

    def __init__(self, *logs: Log, state: str = "Succeeded") -> None:
        super().__init__()
        self._logs, self._state = logs, state
        self._files: dict[str, str] = {}

    def create_config_map(self, config_map: Object) -> Object:
        self._files = config_map["binaryData"]
        return super().create_config_map(config_map)

    def create_job(self, job: Object, *, is_dry_run: bool = False) -> Object:
        made = super().create_job(job, is_dry_run=is_dry_run)
        name = made["metadata"]["name"]
        self.stored[name] = stored(name, state=self._state)
        self.all_pods = [pod("launcher", role="launcher")]
        key = base64.b64decode(self._files[_keys_by_path(job)["key"]])
        found = [line for log in self._logs for line in log(key)]
        self.logs = {"launcher": [f"{number:05} {line.rstrip(chr(10))}\n".encode() for number, line in enumerate(found)]}
        return made


class Trap:
    """Makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def _keys_by_path(job: Any) -> dict[str, str]:
    [volume] = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["volumes"]
    return {item["path"]: item["key"] for item in volume["configMap"]["items"]}
