"""What a component is: a program with arguments, and the place where it reports that it is healthy."""

from dataclasses import dataclass
from pathlib import Path

from embedded.cgroups import group_name, second_group_name
from embedded.layout import Layout
from embedded.network import Addresses
from embedded.record import Record

SECOND_NODE = "node-2"
"""Its component, and the first node's interface to it."""


@dataclass(frozen=True)
class Component:
    """One process of the cluster.

    `health` is a URL that answers 200 when healthy; `unix:` and a path, as the host sees it, is a socket that must accept connections.
    `node` is the component that holds the namespaces and the control group in which it runs; "" means the cluster's own.
    With `own_user` it runs as a user of the cluster's own: it needs root's access to files, and no other of root's powers.
    The kernel counts inotify instances by user (128 each, mostly) and these components take a dozen.
    """

    name: str
    program: str
    arguments: tuple[str, ...]
    health: str
    own_user: bool = False
    node: str = ""


@dataclass(frozen=True)
class Node:
    """A real node; `suffix` ends the names of its components and files."""

    name: str
    suffix: str
    address: str
    pods: str
    private: Path
    group: str

    @property
    def component(self) -> str:
        """The component that holds its namespaces; "" when they are the cluster's own."""
        return SECOND_NODE if self.suffix else ""


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
        """The name of the first real node, also the host name inside."""
        return node_name(self.layout.name)

    @property
    def first(self) -> Node:
        """The node that lives in the cluster's own namespaces."""
        group = group_name(self.layout.root)
        return Node(self.node, "", self.addresses.node, self.addresses.pods, self.layout.private, group)

    @property
    def second(self) -> Node:
        """The node that has namespaces of its own within these."""
        addresses, group = self.addresses, second_group_name(self.layout.root)
        return Node(f"{self.node}-2", "-2", addresses.second_node, addresses.second_pods, self.layout.second_private, group)

    @property
    def nodes(self) -> list[Node]:
        """The real nodes, unless there is a control plane only."""
        return [self.first, self.second][: self.record.options.nodes]

    @property
    def feature_gates(self) -> tuple[str, ...]:
        """The argument of every component that sets the feature gates; none unless some are set."""
        gates = self.record.options.feature_gates
        return (f"--feature-gates={gates}",) if gates else ()

    def certificate(self, file: str) -> str:
        """Return the path of a certificate or key file."""
        return str(self.layout.certificates / file)

    def config(self, file: str) -> str:
        """Return the path of a configuration file."""
        return str(self.layout.config / file)


def node_name(cluster: str) -> str:
    """Return the name of the first real node of `cluster`."""
    return f"mpiop-{cluster}"
