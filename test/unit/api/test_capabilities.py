"""What an operator offers by its flags, and what tools read of it."""

import pytest

from mpiop.api.capabilities import Capabilities


@pytest.mark.parametrize(
    ("default_ssh", "agent_image", "modes", "auto"),
    [
        pytest.param("Image", None, ["Image", "Injected"], "Image", id="the built-in agent image may not be where nodes can pull it"),
        pytest.param("Image", "registry.example.com/agent:1", ["Image", "Injected"], "Injected", id="an agent image is given"),
        pytest.param("Injected", None, ["Image", "Injected"], "Injected", id="the administrator made injected ssh the default"),
        pytest.param("Image", "", ["Image"], "Image", id="there is no agent"),
    ],
)
def test_injected_ssh_is_offered_and_chosen_by_the_flags_of_the_operator(
    default_ssh: str, agent_image: str | None, modes: list[str], auto: str
) -> None:
    offered = Capabilities.offered("1.2.3", default_ssh=default_ssh, agent_image=agent_image)
    assert Capabilities.parse({"data": offered.data()}) == offered
    assert (offered.version, offered.ssh_modes, offered.ssh_auto) == ("1.2.3", modes, auto)


@pytest.mark.parametrize("config_map", [{}, {"data": None}, {"data": {"of-a-later-version": "x"}}])
def test_a_config_map_of_another_version_forbids_nothing_and_chooses_the_image(config_map: dict[str, object]) -> None:
    found = Capabilities.parse(config_map)
    assert ("Injected" in found.ssh_modes, found.ssh_auto) == (True, "Image")
