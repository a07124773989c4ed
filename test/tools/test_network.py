"""The addresses of clusters."""

import ipaddress

import pytest

from embedded.network import COUNT, Addresses, free_indices


@pytest.mark.parametrize(
    ("destinations", "first"),
    [
        ((), 0),
        (("default", "192.0.2.0/24", "fe80::/64", "127.0.0.1"), 0),
        (("10.128.0.0/18", "10.129.96.0/30"), 2),
        (("10.128.0.5",), 1),
        (("10.128.0.0/10",), None),
        (("10.0.0.0/8",), None),
    ],
    ids=["no route", "routes elsewhere", "two clusters are up", "one address", "exactly all blocks", "a VPN that has all of 10/8"],
)
def test_a_block_that_any_route_overlaps_is_not_free(destinations: tuple[str, ...], first: int | None) -> None:
    assert next(iter(free_indices(list(destinations))), None) == first


@pytest.mark.parametrize("index", [0, COUNT - 1])
def test_all_addresses_are_within_the_block_and_apart(index: int) -> None:
    addresses = Addresses(index)
    block = ipaddress.IPv4Network(addresses.block)
    blocks = (addresses.pods, addresses.services, addresses.simulated_pods, addresses.second_pods, addresses.second_link)
    networks = [ipaddress.IPv4Network(text) for text in blocks]
    link = ipaddress.IPv4Network(f"{addresses.host}/30", strict=False)
    assert all(network.subnet_of(block) for network in [*networks, link])
    assert not any(one.overlaps(other) for one in [*networks, link] for other in [*networks, link] if one is not other)
    assert ipaddress.ip_address(addresses.node) in link
    assert ipaddress.ip_address(addresses.gateway) in networks[0]
    assert ipaddress.ip_address(addresses.second_gateway) in networks[3]
    assert {ipaddress.ip_address(addresses.towards_second), ipaddress.ip_address(addresses.second_node)} <= set(networks[4])
    assert {ipaddress.ip_address(addresses.api_service), ipaddress.ip_address(addresses.dns_service)} <= set(networks[1])


def test_the_interface_name_fits_the_kernels_15_bytes() -> None:
    assert len(Addresses(COUNT - 1).interface) <= 15
