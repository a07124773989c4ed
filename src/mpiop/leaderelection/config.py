"""Where the Lease is and how long its times are."""

import uuid
from dataclasses import dataclass

from mpiop.kube.objects import Key
from mpiop.options import Options

_JITTER_MARGIN = 1.2
_SHORTEST_REQUEST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """A Lease and its times, refused when they could not keep two leaders apart (L60).

    Attributes:
        key: Namespace and name of the Lease.
        lease_duration_seconds: How long others wait for a record that does not change; whole seconds, because a Lease records only those.
        renew_deadline_seconds: How long the leader works on without a successful renewal.
        retry_period_seconds: Pause between two attempts.

    Raises:
        ValueError: On construction, with a sentence that names the flags.
    """

    key: Key
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 3.0

    def __post_init__(self) -> None:
        """Check what must hold: lease duration > renew deadline > 1.2 x retry period > 0."""
        if not self.key.namespace or not self.key.name:
            raise ValueError("leader election needs a Lease: set --lock-namespace and --lease-name")
        if self.lease_duration_seconds != int(self.lease_duration_seconds):
            raise ValueError(f"--lease-duration {self.lease_duration_seconds:g}s must be whole seconds: a Lease cannot contain fractions")
        if self.lease_duration_seconds <= self.renew_deadline_seconds:
            raise ValueError(
                f"--lease-duration {self.lease_duration_seconds:g}s must be longer than --renew-deadline {self.renew_deadline_seconds:g}s: "
                "else a second leader may start before the first has stopped"
            )
        if self.retry_period_seconds <= 0:
            raise ValueError(f"--retry-period {self.retry_period_seconds:g}s must be longer than 0s")
        if self.renew_deadline_seconds <= _JITTER_MARGIN * self.retry_period_seconds:
            raise ValueError(
                f"--renew-deadline {self.renew_deadline_seconds:g}s must be longer than {_JITTER_MARGIN} times "
                f"--retry-period {self.retry_period_seconds:g}s: else one failed renewal ends leadership"
            )

    @property
    def request_deadline_seconds(self) -> float:
        """Return how long a request about the Lease may take: four of them fit into the renew deadline.

        Where that is so short that a busy machine cannot answer in time, it is a second, but never more than half the renew deadline: one
        that hangs must leave time for another.
        """
        return max(self.renew_deadline_seconds / 4, min(_SHORTEST_REQUEST_SECONDS, self.renew_deadline_seconds / 2))

    @classmethod
    def from_options(cls, options: Options) -> "ElectionConfig":
        """Return the configuration that the flags ask for.

        Raises:
            ValueError: The times do not fit together.
        """
        return cls(
            key=Key(options.lock_namespace, options.lease_name),
            lease_duration_seconds=options.lease_duration_seconds,
            renew_deadline_seconds=options.renew_deadline_seconds,
            retry_period_seconds=options.retry_period_seconds,
        )


def unique_identity(host: str) -> str:
    """Return a holder identity that no other process has, not even the next one on the same `host`."""
    return f"{host}_{uuid.uuid4()}"
