"""The log of a job's launcher: of each of its Pods and runs, each line once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mpiop.client.api import Api, LogOptions, Object
from mpiop.client.errors import NotFoundError, UnreachableError
from mpiop.client.logs import Reader, is_running
from mpiop.client.progress import newest_launcher
from mpiop.client.tags import RankLines, Tagged


class Run(NamedTuple):
    """A run of a launcher's container."""

    pod: str
    number: int


class LauncherLog:
    """Reads what was printed since the last call of `read`.

    Attributes:
        problem: Why the log could not be read to its end just now; None if it could.
        has_lines: Whether there was a line.
    """

    def __init__(self, api: Api, options: LogOptions, rank_lines: Callable[[], RankLines]) -> None:
        """Read nothing yet. Each request has these `options`; for each run of the launcher, `rank_lines` is called once."""
        self._api, self._options, self._rank_lines = api, options, rank_lines
        self._readers: dict[str, Reader] = {}
        self._lines: dict[Run, RankLines] = {}
        self._done = set[Run]()
        self.problem: UnreachableError | None = None
        self.has_lines = False

    def read(self, pods: Sequence[Object], *, is_last: bool) -> Iterator[Tagged]:
        """Yield the new lines: the rest of the Pods that were read before, and those of the newest.

        Args:
            pods: Those of the job.
            is_last: Whether nothing more is read after this.
        """
        self.problem = None
        newest = newest_launcher(pods)
        for pod in sorted(pods, key=_created):
            if pod is newest or pod["metadata"]["name"] in self._readers:
                yield from self._read_pod(pod, is_last=is_last)
        for run in self._lines.keys() - {run_of(pod) for pod in pods}:  # gone before its end was seen
            yield from self._lines.pop(run).rest()

    def _read_pod(self, pod: Object, *, is_last: bool) -> Iterator[Tagged]:
        if (run := run_of(pod)) is None or run in self._done:
            return
        reader = self._readers.setdefault(run.pod, Reader(self._api, run.pod, container_of(pod)))
        lines = self._lines.setdefault(run, self._rank_lines())
        has_ended = is_last or not is_running(pod, container_of(pod))
        try:
            for line in reader.read(self._options, is_last=has_ended):
                self.has_lines = True
                yield from lines.add(line.text)
        except NotFoundError:  # the Pod has gone meanwhile; another may come
            pass
        except UnreachableError as error:
            self.problem = error
            return
        if has_ended:
            self._done.add(run)
            yield from self._lines.pop(run).rest()


def run_of(pod: Mapping[str, Any] | None) -> Run | None:
    """Return the run of a launcher's container; None before it has started."""
    for row in (pod or {}).get("status", {}).get("containerStatuses") or ():
        if pod is not None and row["name"] == container_of(pod) and "waiting" not in row.get("state", {}):
            return Run(pod["metadata"]["name"], row.get("restartCount", 0))
    return None


def container_of(pod: Mapping[str, Any]) -> str:
    """Return the name of a Pod's first container."""
    return str(pod["spec"]["containers"][0]["name"])


def _created(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("creationTimestamp", ""))
