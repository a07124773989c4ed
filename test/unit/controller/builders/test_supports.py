"""Service, ConfigMap and Secret, word by word."""

from dataclasses import replace

import yaml

from example_jobs import PI
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.config_map import build_config_map
from mpiop.controller.builders.service import build_service
from mpiop.controller.builders.ssh_secret import KeyPair, build_ssh_secret

METADATA = """
  namespace: default
  labels:
    app: pi
    training.kubeflow.org/operator-name: mpi-operator
    training.kubeflow.org/job-name: pi
  ownerReferences:
  - apiVersion: kubeflow.org/v2beta1
    kind: MPIJob
    name: pi
    uid: 1b671a64-40d5-491e-99b0-da01ff1f3341
    controller: true
    blockOwnerDeletion: true
"""


def test_service() -> None:
    assert build_service(PI) == yaml.safe_load(f"""
apiVersion: v1
kind: Service
metadata:
  name: pi{METADATA}
spec:
  clusterIP: None
  selector:
    training.kubeflow.org/operator-name: mpi-operator
    training.kubeflow.org/job-name: pi
  publishNotReadyAddresses: false
""")


def test_a_launcher_that_works_is_published_before_it_is_ready() -> None:
    assert build_service(replace(PI, run_launcher_as_worker=True))["spec"]["publishNotReadyAddresses"] is True


def test_config_map() -> None:
    assert build_config_map(PI, iter(["pi-worker-1"]), BuildOptions(cluster_domain="example.com")) == yaml.safe_load(f"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: pi-config{METADATA}
data:
  hostfile: |
    pi-worker-0.pi.default.svc.example.com slots=1
    pi-worker-1.pi.default.svc.example.com slots=1
  discover_hosts.sh: |
    #!/bin/sh
    echo pi-worker-1.pi.default.svc.example.com
""")


def test_secret() -> None:
    assert build_ssh_secret(PI, KeyPair("private\n", "public\n")) == yaml.safe_load(f"""
apiVersion: v1
kind: Secret
metadata:
  name: pi-ssh{METADATA}
type: kubernetes.io/ssh-auth
immutable: true
data:
  ssh-privatekey: cHJpdmF0ZQo=
  ssh-publickey: cHVibGljCg==
""")
