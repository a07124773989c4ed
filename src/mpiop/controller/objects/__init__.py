"""Pure functions that build the objects of a job, one kind each.

Every result is a fresh tree that the caller owns; the job and its templates are never changed.
"""

from dataclasses import dataclass

from mpiop.api import constants as c


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Settings of the operator that show in what it builds.

    Attributes:
        cluster_domain: DNS domain of the cluster without outer dots; "" leaves it out of host names.
        gang_scheduler: Value of `--gang-scheduling`; "" is off.
        ssh: Value of `--ssh`: the ssh mode of jobs without the annotation.
        agent_image: Value of `--agent-image`: where mpiop-agent comes from.
        agent_delivery: Value of `--agent-delivery`: how it comes into a pod.
    """

    cluster_domain: str = ""
    gang_scheduler: str = ""
    ssh: str = c.SSH_IMAGE
    agent_image: str = ""
    agent_delivery: str = c.AGENT_COPIED
