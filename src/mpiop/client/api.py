"""What the client asks of an API server."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What is read of a log.

    Attributes:
        follow: Continue until the container has ended.
        previous: Of the run before the last restart.
        since_seconds: Only lines that are newer; None for all.
        since_time: Only lines from the second of this time on, as a stamp of the log; "" for all.
        tail: Only so many lines, the last; None for all.
    """

    follow: bool = False
    previous: bool = False
    since_seconds: int | None = None
    since_time: str = ""
    tail: int | None = None


class Api(Protocol):
    """The requests of the client and of `kubectl mpi`; each raises a `ClientError`."""

    namespace: str

    def __hash__(self) -> int:
        """Each is equal to itself only."""
        ...

    def within(self, namespace: str) -> "Api":
        """Return the same for another namespace."""
        ...

    def job(self, name: str) -> Object:
        """Return an MPIJob."""
        ...

    def jobs(self, *, everywhere: bool = False) -> Sequence[Object]:
        """Return the MPIJobs of the namespace, or of all."""
        ...

    def create_job(self, job: Object, *, is_dry_run: bool = False) -> Object:
        """Create an MPIJob and return it as stored."""
        ...

    def check_pod(self, template: Object) -> None:
        """Let the API server check a Pod template, and create nothing."""
        ...

    def patch_job(self, name: str, patch: Object) -> Object:
        """Merge `patch` into an MPIJob."""
        ...

    def delete_job(self, job: Object) -> None:
        """Delete exactly this MPIJob; do nothing if it is gone."""
        ...

    def pods(self, job: str) -> Sequence[Object]:
        """Return the Pods of a job."""
        ...

    def pod(self, name: str) -> Object:
        """Return a Pod."""
        ...

    def events(self, uid: str) -> Sequence[Object]:
        """Return the Events about an object."""
        ...

    def create_config_map(self, config_map: Object) -> Object:
        """Create a ConfigMap."""
        ...

    def patch_config_map(self, name: str, patch: Object) -> Object:
        """Merge `patch` into a ConfigMap."""
        ...

    def delete_config_map(self, config_map: Object) -> None:
        """Delete exactly this ConfigMap."""
        ...

    def read_log(self, pod: str, container: str, options: LogOptions) -> Iterator[bytes]:
        """Yield the log of a container, with time stamps, in pieces; one that is followed may end before its container."""
        ...

    def get(self, path: str) -> Object:
        """Return what the API server answers at `path`."""
        ...

    def may(self, verb: str, group: str, resource: str) -> bool:
        """Return whether the user may do this in the namespace."""
        ...
