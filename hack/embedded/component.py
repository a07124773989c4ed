"""What a component is: a program with arguments, and the place where it says that it is well."""

from dataclasses import dataclass

from embedded.layout import Layout
from embedded.network import Addresses
from embedded.record import Record


@dataclass(frozen=True)
class Component:
    """One process of the cluster.

    `health` is a URL that answers 200 when it is well; a URL of the scheme `unix` is a socket that must accept connections.
    With `own_user` it runs as a user of the cluster's own: it needs root's access to files, and no other of root's powers.
    The kernel counts inotify instances by user (128 each, mostly) and these components take a dozen.
    """

    name: str
    program: str
    arguments: tuple[str, ...]
    health: str
    own_user: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that decides how the components of one cluster look."""

    layout: Layout
    record: Record
    may_lower_oom_score: bool

    @property
    def addresses(self) -> Addresses:
        """The cluster's addresses."""
        return self.record.addresses

    @property
    def node(self) -> str:
        """The name of the real node, also the host name inside."""
        return node_name(self.layout.name)

    def certificate(self, file: str) -> str:
        """Return the path of a certificate or key file."""
        return str(self.layout.certificates / file)

    def config(self, file: str) -> str:
        """Return the path of a configuration file."""
        return str(self.layout.config / file)


def node_name(cluster: str) -> str:
    """Return the name of the real node of `cluster`."""
    return f"mpiop-{cluster}"
