"""A right that the operator may lack in some namespaces: after a refusal it does without for a while."""

from typing import Final

from mpiop.clock import Clock
from mpiop.kube.errors import KubeError, StatusError

FORBIDDEN_SECONDS: Final = 600.0
"""How long nothing is asked in a namespace after a refusal: the right may be granted later."""


class OptionalPermission:
    """Remembers in which namespaces requests were forbidden, and until when."""

    def __init__(self, clock: Clock) -> None:
        """Assume that the right is there."""
        self._clock = clock
        self._until: dict[str, float] = {}

    def wait_seconds(self, namespace: str) -> float:
        """Return the seconds until a request should be tried again; 0 if none was forbidden lately."""
        return max(0.0, self._until.get(namespace, 0.0) - self._clock.monotonic())

    def note(self, namespace: str, error: KubeError) -> None:
        """Note the `error` of a request in `namespace`."""
        if isinstance(error, StatusError) and error.is_forbidden:
            self._until[namespace] = self._clock.monotonic() + FORBIDDEN_SECONDS
