"""The settings of the operator: one frozen value, made by `cli.flags` from the command line and passed down; a new flag changes both."""

from dataclasses import dataclass
from typing import Final

from mpiop import __version__

DEFAULT_AGENT_IMAGE: Final = f"mpiop.invalid/mpi-operator-agent:v{__version__}"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one operator process; durations in seconds.

    Attributes:
        namespaces: Whose MPIJobs are served; none means all namespaces.
        agent_image: Image of mpiop-agent; "" for none, None for `DEFAULT_AGENT_IMAGE`, which nobody has confirmed that nodes can pull.

    Raises:
        ValueError: They contradict each other; the message is one sentence for the user who typed them.
    """

    master: str = ""
    kubeconfig: str = ""
    namespaces: tuple[str, ...] = ()
    threadiness: int = 16
    monitoring_port: int = 0
    metrics_secure: bool = False
    metrics_cert_dir: str = ""
    health_port: int = 8080
    gang_scheduling: str = ""
    lock_namespace: str = "mpi-operator"
    lease_name: str = "mpi-operator"
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 3.0
    kube_api_qps: float = 0.0
    kube_api_burst: int = 0
    queue_rate_limit: float = 10.0
    queue_burst: int = 100
    cluster_domain: str = ""
    ssh_key_type: str = "ecdsa-p521"
    ssh: str = "Image"
    agent_image: str | None = None
    agent_delivery: str = "Copy"
    lost_worker_timeout_seconds: float = 150.0
    log_format: str = "auto"
    log_level: str = "info"
    uvloop: bool = True

    def __post_init__(self) -> None:
        """Refuse what would leave metrics in the open, or unserved, against the wish, and injected ssh without its image."""
        if self.ssh == "Injected" and self.agent_image == "":
            raise ValueError("--ssh=Injected needs mpiop-agent: give its image with --agent-image, or leave --ssh out")
        if self.metrics_cert_dir and not self.metrics_secure:
            raise ValueError("--metrics-cert-dir is for HTTPS: add --metrics-secure, or leave it out")
        if self.metrics_secure and not self.monitoring_port:
            raise ValueError("--metrics-secure needs a port to serve metrics on: add --monitoring-port")
        if self.metrics_secure and self.monitoring_port == self.health_port:
            raise ValueError(
                f"--metrics-secure and the probes, which stay plain HTTP, cannot share port {self.health_port}: "
                "give --monitoring-port or --health-port another"
            )
