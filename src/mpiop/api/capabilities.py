"""What an operator offers to the tools of users: the contents of a ConfigMap that it publishes (docs/adr/0039-capabilities.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from mpiop.api import constants as c

NAME: Final = "mpi-operator-capabilities"
"""Of the ConfigMap."""
_VERSION: Final = "version"
_SSH_MODES: Final = "ssh-modes"
_SSH_AUTO: Final = "ssh-auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an operator offers.

    Attributes:
        version: Of the operator.
        ssh_modes: Values of the annotation `mpiop.kubeflow.org/ssh` that it can run.
        ssh_auto: The one that tools choose if the user leaves it to them.
    """

    version: str
    ssh_modes: Sequence[str]
    ssh_auto: str

    @classmethod
    def offered(cls, version: str, *, default_ssh: str, agent_image: str | None) -> Self:
        """Return what an operator offers with these flags.

        Args:
            version: Of the operator.
            default_ssh: `--ssh`.
            agent_image: `--agent-image`; None if the flag is not given: nobody has confirmed that nodes can pull the default, so tools
                do not choose it. "" switches mpiop-agent off.
        """
        modes = [mode for mode in c.SSH_MODES if mode != c.SSH_INJECTED or agent_image != ""]
        is_chosen = c.SSH_INJECTED in modes and bool(agent_image or default_ssh == c.SSH_INJECTED)
        return cls(version=version, ssh_modes=modes, ssh_auto=c.SSH_INJECTED if is_chosen else c.SSH_IMAGE)

    @classmethod
    def parse(cls, config_map: Mapping[str, Any]) -> Self:
        """Read a ConfigMap, also of another version: what is missing is what an operator without it offered."""
        data: Mapping[str, str] = config_map.get("data") or {}
        modes = data.get(_SSH_MODES, " ".join(c.SSH_MODES)).split()
        return cls(version=data.get(_VERSION, ""), ssh_modes=modes, ssh_auto=data.get(_SSH_AUTO, c.SSH_IMAGE))

    def data(self) -> dict[str, str]:
        """Return the data of the ConfigMap."""
        return {_VERSION: self.version, _SSH_MODES: " ".join(self.ssh_modes), _SSH_AUTO: self.ssh_auto}
