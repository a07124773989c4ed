"""The second node: namespaces and a control group of its own within those of the cluster, and the programs in them.

Started by the supervisor as `python3 -m embedded.second_node hold STATE CACHE HOSTNAME INDEX`, which holds the namespaces for as long
as it lives, and as `… run STATE PID COMMAND…`, which becomes a program in the namespaces that the process PID holds.
Process ids are the cluster's, so the second node ends with the supervisor.
"""

import os
import socket
import sys
from pathlib import Path

from embedded import namespaces, network
from embedded.cgroups import Group, read_hierarchies, second_group_name
from embedded.component import SECOND_NODE, Component, Plan
from embedded.layout import Layout

SOCKET = "node.sock"
MODULE = ("-m", "embedded.second_node")
# As nsenter calls them.
SPACES = ("--mount", "--net", "--uts", "--ipc")


def second_node(plan: Plan, cache: Path) -> Component:
    """Return the component that holds the namespaces of the second node."""
    layout = plan.layout
    arguments = (*MODULE, "hold", str(layout.root), str(cache), plan.second.name, str(plan.addresses.index))
    return Component(SECOND_NODE, sys.executable, arguments, f"unix:{layout.second_private / 'run' / SOCKET}")


def group(layout: Layout) -> Group:
    """Return the control group of the second node."""
    return Group(read_hierarchies(), second_group_name(layout.root))


def hold(layout: Layout, cache: Path, hostname: str, index: int) -> None:
    """Make the node, and hold it; who connects to the socket learns that it is made."""
    own = group(layout)
    own.create()
    own.enter()
    namespaces.unshare(namespaces.NODE)
    namespaces.become_private()
    namespaces.hide({target: layout.second_private / name for name, target in namespaces.PRIVATE.items()}, (layout.root, cache))
    socket.sethostname(hostname)
    namespaces.raise_loopback()
    network.join_second_node(network.Addresses(index), SECOND_NODE)
    address = namespaces.PRIVATE["run"] / SOCKET
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(address))
        listener.listen()
        while True:
            listener.accept()[0].close()


def run(layout: Layout, holder: str, command: list[str]) -> None:
    """Become `command` on the second node."""
    group(layout).enter()
    os.execvp("nsenter", ["nsenter", f"--target={holder}", *SPACES, "--", *command])  # noqa: S606 - no shell


def main(verb: str, state: Path, words: list[str]) -> None:
    """Run the command of the module's docstring."""
    layout = Layout(state.name, state)
    if verb == "run":
        run(layout, words[0], words[1:])
    else:
        hold(layout, Path(words[0]), words[1], int(words[2]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
