"""Every child of a job, word by word; the rules are in the tests of each builder, the scripts in test_ssh_script."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from example_jobs import PI
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import build_config_map
from mpiop.controller.objects.launcher_job import build_launcher_job
from mpiop.controller.objects.service import build_service
from mpiop.controller.objects.ssh_secret import KeyPair, build_ssh_secret
from mpiop.controller.objects.worker_pod import build_worker_pod
from mpiop.kube.objects import Object

SCRIPT = "mpiop.kubeflow.org/ssh"
OWNER = """
  ownerReferences:
  - apiVersion: kubeflow.org/v2beta1
    kind: MPIJob
    name: pi
    uid: 1b671a64-40d5-491e-99b0-da01ff1f3341
    controller: true
    blockOwnerDeletion: true
"""
METADATA = f"""
  namespace: default
  labels:
    app: pi
    training.kubeflow.org/operator-name: mpi-operator
    training.kubeflow.org/job-name: pi{OWNER}"""
CASES = [
    pytest.param(
        lambda: build_service(PI),
        f"""
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
""",
        id="Service",
    ),
    pytest.param(
        lambda: build_config_map(PI, iter(["pi-worker-1"]), BuildOptions(cluster_domain="example.com")),
        f"""
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
""",
        id="ConfigMap",
    ),
    pytest.param(
        lambda: build_ssh_secret(PI, KeyPair("private\n", "public\n")),
        f"""
apiVersion: v1
kind: Secret
metadata:
  name: pi-ssh{METADATA}
type: kubernetes.io/ssh-auth
immutable: true
data:
  ssh-privatekey: cHJpdmF0ZQo=
  ssh-publickey: cHVibGljCg==
""",
        id="Secret",
    ),
    pytest.param(
        lambda: build_launcher_job(PI, BuildOptions(), suspend=False),
        f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: pi-launcher{METADATA}
  annotations:
    mpiop.kubeflow.org/launcher-revision: 3db9238daedbcd46
    mpiop.kubeflow.org/start-revision: 4d3d5d78a5241f9c
spec:
  podReplacementPolicy: Failed
  suspend: false
  template:
    metadata:
      labels:
        training.kubeflow.org/operator-name: mpi-operator
        training.kubeflow.org/job-name: pi
        training.kubeflow.org/job-role: launcher
        mpi_job_name: pi
        mpi_role_type: launcher
      ownerReferences:
      - apiVersion: kubeflow.org/v2beta1
        kind: MPIJob
        name: pi
        uid: 1b671a64-40d5-491e-99b0-da01ff1f3341
        controller: true
        blockOwnerDeletion: true
      annotations:
        mpiop.kubeflow.org/ssh: SCRIPT
        mpiop.kubeflow.org/addresses: ""
        mpiop.kubeflow.org/ssh-config: |
          ConnectionAttempts 10
          Include ~/.ssh/config /etc/ssh/ssh_config
          Host *
          ServerAliveInterval 15
          ServerAliveCountMax 8
    spec:
      hostname: pi-launcher
      subdomain: pi
      restartPolicy: OnFailure
      containers:
      - name: launcher
        image: example.com/pi
        command: [mpirun, /pi]
        env:
        - {{name: K_MPI_JOB_ROLE, value: launcher}}
        - {{name: OMPI_MCA_orte_keep_fqdn_hostnames, value: "true"}}
        - {{name: OMPI_MCA_orte_default_hostfile, value: /etc/mpi/hostfile}}
        - {{name: OMPI_MCA_plm_rsh_args, value: -o ConnectionAttempts=10}}
        - {{name: OMPI_MCA_orte_set_default_slots, value: "1"}}
        - {{name: PRTE_MCA_prte_keep_fqdn_hostnames, value: "true"}}
        - {{name: PRTE_MCA_prte_default_hostfile, value: /etc/mpi/hostfile}}
        - {{name: PRTE_MCA_plm_ssh_args, value: -F /etc/mpi-hosts/ssh_config}}
        - {{name: PRTE_MCA_prte_set_default_slots, value: "1"}}
        - {{name: OMPI_MCA_plm_rsh_agent, value: "/etc/mpi-hosts/ssh:ssh"}}
        - {{name: PRTE_MCA_plm_ssh_agent, value: "/etc/mpi-hosts/ssh:ssh"}}
        - {{name: NVIDIA_VISIBLE_DEVICES, value: ""}}
        - {{name: NVIDIA_DRIVER_CAPABILITIES, value: ""}}
        volumeMounts:
        - {{name: ssh-auth, mountPath: /root/.ssh}}
        - {{name: mpi-job-config, mountPath: /etc/mpi}}
        - {{name: mpi-hosts, mountPath: /etc/mpi-hosts}}
      volumes:
      - name: ssh-auth
        secret:
          secretName: pi-ssh
          defaultMode: 0600
          items:
          - {{key: ssh-privatekey, path: id_rsa}}
          - {{key: ssh-publickey, path: id_rsa.pub}}
          - {{key: ssh-publickey, path: authorized_keys}}
      - name: mpi-job-config
        configMap:
          name: pi-config
          items:
          - {{key: hostfile, path: hostfile, mode: 0444}}
          - {{key: discover_hosts.sh, path: discover_hosts.sh, mode: 0555}}
      - name: mpi-hosts
        downwardAPI:
          items:
          - path: ssh
            mode: 0555
            fieldRef:
              fieldPath: metadata.annotations['mpiop.kubeflow.org/ssh']
          - path: ssh_config
            mode: 0444
            fieldRef:
              fieldPath: metadata.annotations['mpiop.kubeflow.org/ssh-config']
          - path: addresses
            fieldRef:
              fieldPath: metadata.annotations['mpiop.kubeflow.org/addresses']
""",
        id="launcher Job",
    ),
    pytest.param(
        lambda: build_worker_pod(PI, 1, BuildOptions()),
        f"""
apiVersion: v1
kind: Pod
metadata:
  name: pi-worker-1
  namespace: default
  labels:
    training.kubeflow.org/operator-name: mpi-operator
    training.kubeflow.org/job-name: pi
    training.kubeflow.org/job-role: worker
    training.kubeflow.org/replica-index: "1"
    mpi_job_name: pi
    mpi_role_type: worker
  annotations:
    mpiop.kubeflow.org/ssh: SCRIPT
    mpiop.kubeflow.org/ssh-config: |
      ConnectionAttempts 10
      Include ~/.ssh/config /etc/ssh/ssh_config
      Host *
      ServerAliveInterval 15
      ServerAliveCountMax 8{OWNER}
spec:
  hostname: pi-worker-1
  subdomain: pi
  restartPolicy: Never
  dnsConfig:
    searches: [pi.default.svc.cluster.local]
  containers:
  - name: worker
    image: example.com/pi
    command: [/usr/sbin/sshd, -De]
    env:
    - {{name: K_MPI_JOB_ROLE, value: worker}}
    volumeMounts:
    - {{name: ssh-auth, mountPath: /root/.ssh}}
    - {{name: mpi-hosts, mountPath: /etc/mpi-hosts}}
  volumes:
  - name: ssh-auth
    secret:
      secretName: pi-ssh
      defaultMode: 0600
      items:
      - {{key: ssh-privatekey, path: id_rsa}}
      - {{key: ssh-publickey, path: id_rsa.pub}}
      - {{key: ssh-publickey, path: authorized_keys}}
  - name: mpi-hosts
    downwardAPI:
      items:
      - path: ssh
        mode: 0555
        fieldRef:
          fieldPath: metadata.annotations['mpiop.kubeflow.org/ssh']
      - path: ssh_config
        mode: 0444
        fieldRef:
          fieldPath: metadata.annotations['mpiop.kubeflow.org/ssh-config']
""",
        id="worker pod",
    ),
]


@pytest.mark.parametrize(("build", "text"), CASES)
def test_a_child_word_by_word(build: Callable[[], Object], text: str) -> None:
    child: Any = build()
    pod = child["spec"]["template"] if child["kind"] == "Job" else child
    if child["kind"] in {"Job", "Pod"}:
        pod["metadata"]["annotations"][SCRIPT] = "SCRIPT"
    assert child == yaml.safe_load(text)
