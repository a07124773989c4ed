"""What the operator can be told at start: one frozen value, made by `cli` and passed down."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one operator process; durations in seconds."""

    master: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    threadiness: int = 16
    monitoring_port: int = 0
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
    ssh_key_type: str = "ed25519"
    log_format: str = "auto"
    log_level: str = "info"
