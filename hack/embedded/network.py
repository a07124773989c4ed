"""The network of a cluster: one /16 of its own, and one veth pair that joins it to the host.

Everything else (bridge, pods, services) is inside the cluster's network namespace. The veth pair dies with that namespace.
"""

import ipaddress
import json
import os
import subprocess

from embedded.errors import ClusterError

# 10.128.0.0/16 … 10.191.0.0/16; container engines and clouds prefer the lower end of 10.0.0.0/8 and 172.16.0.0/12.
FIRST, COUNT = 128, 64


class Addresses:
    """The addresses of the cluster number `index`; all within `block`.

    Attributes:
        block: All that follows.
        pods: Pods of the first node.
        gateway: The bridge that the pods are on.
        services: Cluster IPs.
        api_service: `kubernetes.default`.
        dns_service: `kube-dns.kube-system`, the name server of the pods.
        host: The host, as the cluster sees it.
        node: The first node and the API server, as all others see them.
        second_link: The link between the two nodes.
        towards_second: The first node, as the second sees it.
        second_node: The second node, as all others see it.
        second_pods: Pods of the second node.
        second_gateway: The bridge that they are on.
        simulated_pods: Pods of kwok's nodes; nothing answers there.
        interface: The host's end of the veth pair.
    """

    def __init__(self, index: int) -> None:
        """Compute them."""
        start = f"10.{FIRST + index}"
        self.index = index
        self.block = f"{start}.0.0/16"
        self.pods = f"{start}.0.0/18"
        self.gateway = f"{start}.0.1"
        self.services = f"{start}.64.0/19"
        self.api_service = f"{start}.64.1"
        self.dns_service = f"{start}.64.10"
        self.host = f"{start}.96.1"
        self.node = f"{start}.96.2"
        self.second_link = f"{start}.96.4/30"
        self.towards_second = f"{start}.96.5"
        self.second_node = f"{start}.96.6"
        self.second_pods = f"{start}.112.0/20"
        self.second_gateway = f"{start}.112.1"
        self.simulated_pods = f"{start}.128.0/17"
        self.interface = f"mpiop-{index}"


def free_indices(destinations: list[str]) -> list[int]:
    """Return the indices whose block overlaps none of `destinations` (as `ip route` prints them)."""
    taken = [ipaddress.ip_network(text, strict=False) for text in destinations if text != "default" and ":" not in text]
    return [index for index in range(COUNT) if not any(ipaddress.ip_network(Addresses(index).block).overlaps(network) for network in taken)]


def join(process: int, alias: str) -> Addresses:
    """Link the network namespace of `process` to the host, in the first free block.

    Args:
        process: Any process in the namespace.
        alias: Names the owner of the interface; `remove_interface` asks for it.

    Raises:
        ClusterError: No block is free, or `ip` failed.
    """
    routes = json.loads(_ip("-json", "route", "show", "table", "all"))
    for index in free_indices([route["dst"] for route in routes if route.get("type") not in {"broadcast", "multicast"}]):
        addresses = Addresses(index)
        # The kernel gives each name once: two clusters that start at the same moment cannot both have it.
        if not _add_pair(addresses.interface, process):
            continue
        _ip("link", "set", addresses.interface, "alias", alias)
        inside = (
            f"address add {addresses.node}/30 dev host0",
            "link set host0 up",
            "link add cni0 type bridge",
            f"address add {addresses.gateway}/18 dev cni0",
            "link set cni0 up",
            # The API server calls webhooks by their Services: kube-proxy turns only what has a route into packets for a pod.
            f"route add {addresses.services} dev cni0",
            # Pods reach the cluster and the host; anything else fails at once instead of after a timeout.
            "route add unreachable default metric 4278198272",
        )
        outside = (
            f"address add {addresses.host}/30 dev {addresses.interface}",
            f"link set {addresses.interface} up",
            f"route add {addresses.pods} via {addresses.node}",
            f"route add {addresses.services} via {addresses.node}",
        )
        _run(["nsenter", f"--net=/proc/{process}/ns/net", "ip", "-batch", "-"], "\n".join(inside))
        _run(["ip", "-batch", "-"], "\n".join(outside))
        return addresses
    raise ClusterError(f"network: no free /16 from 10.{FIRST}.0.0 to 10.{FIRST + COUNT - 1}.0.0 (see `ip route`); stop a cluster or a VPN")


def route_to_second_node(addresses: Addresses) -> None:
    """Let the host reach the second node and its pods, through the first."""
    _run(["ip", "-batch", "-"], "\n".join(f"route add {to} via {addresses.node}" for to in (addresses.second_link, addresses.second_pods)))


def join_second_node(addresses: Addresses, interface: str) -> None:
    """Link the network namespace of this process to that of process 1, which is the first node's, and forward between them.

    Raises:
        ClusterError: `ip` failed.
    """
    to_first = ["nsenter", "--net=/proc/1/ns/net"]
    # A bridge keeps address and routes while its one port is down: a test that cuts the node off has only that to undo.
    bridge = f"to-{interface}"
    for left in (interface, bridge):  # of a node that has ended; the kernel may not have removed the first yet
        subprocess.run([*to_first, "ip", "link", "delete", left], check=False, capture_output=True)
    first = (
        f"link add {bridge} type bridge",
        f"link add {interface} type veth peer name host0 netns {os.getpid()}",
        f"link set {interface} master {bridge}",
        f"address add {addresses.towards_second}/30 dev {bridge}",
        f"link set {interface} up",
        f"link set {bridge} up",
        f"route add {addresses.second_pods} via {addresses.second_node}",
    )
    second = (
        f"address add {addresses.second_node}/30 dev host0",
        "link set host0 up",
        f"route add default via {addresses.towards_second}",
        "link add cni0 type bridge",
        f"address add {addresses.second_gateway}/20 dev cni0",
        "link set cni0 up",
    )
    _run([*to_first, "ip", "-batch", "-"], "\n".join(first))
    _run(["ip", "-batch", "-"], "\n".join(second))
    for prefix in (to_first, []):
        _run([*prefix, "tee", "/proc/sys/net/ipv4/ip_forward"], "1")


def remove_interfaces(alias: str) -> None:
    """Remove the host's interfaces that carry `alias`, if the kernel has not done so already."""
    for name in interfaces(alias):
        subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)


def interfaces(alias: str) -> list[str]:
    """Return the names of the host's interfaces that carry `alias`."""
    return [link["ifname"] for link in json.loads(_ip("-json", "link", "show", "type", "veth") or "[]") if link.get("ifalias") == alias]


def _add_pair(name: str, process: int) -> bool:
    # The peer is born in the cluster's namespace: whenever that goes, the kernel removes the pair, before it has an alias too.
    command = ["ip", "link", "add", name, "type", "veth", "peer", "name", "host0", "netns", str(process)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0 and "File exists" not in result.stderr:
        raise ClusterError(f"`{' '.join(command)}` failed: {result.stderr.strip()}; the kernel needs veth and network namespaces")
    return result.returncode == 0


def _ip(*arguments: str) -> str:
    return _run(["ip", *arguments], "")


def _run(command: list[str], text: str) -> str:
    result = subprocess.run(command, check=False, capture_output=True, text=True, input=text)
    if result.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {result.stderr.strip()}" + (f" (given: {text!r})" if text else ""))
    return result.stdout
