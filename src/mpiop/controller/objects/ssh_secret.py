"""The Secret with the job's SSH key pair."""

from base64 import b64encode
from dataclasses import dataclass, field

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.kube.objects import Object


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An SSH key pair as text; the private key is never logged.

    Attributes:
        private_pem: Private key, PEM armoured.
        public_openssh: Public key, one line of `authorized_keys`, with a final newline.
    """

    private_pem: str = field(repr=False)
    public_openssh: str


def build_ssh_secret(job: MPIJob, key_pair: KeyPair) -> Object:
    """Return the Secret with the key pair of the pods of `job`; it is immutable, because running pods already use the key."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": names.child_metadata(job, job.secret_name),
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
        "data": {
            "ssh-privatekey": b64encode(key_pair.private_pem.encode()).decode(),
            "ssh-publickey": b64encode(key_pair.public_openssh.encode()).decode(),
        },
    }
