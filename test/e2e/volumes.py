"""A volume for the checkpoints of a job, on clusters without a storage class."""

import contextlib
from collections.abc import Iterator
from uuid import uuid4

from e2e.kubectl import Kubectl


@contextlib.contextmanager
def checkpoint_volume(cluster: Kubectl, namespace: str) -> Iterator[None]:
    """Let the claim `checkpoint` of the namespace get a folder that all nodes have, and no earlier run has written to."""
    name = f"checkpoint-{uuid4().hex}"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": namespace, "name": "checkpoint"},
        "hostPath": {"path": f"/var/lib/{name}", "type": "DirectoryOrCreate"},  # the cluster's own, as its /run
    }
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    yield
    cluster.run("delete", "persistentvolume", name, "--wait=false")
