"""Arguments and configurations of the real nodes: containerd, kubelet, kube-proxy, CoreDNS and the CNI network."""

import json
from typing import Any

from embedded.component import Component, Node, Plan

PAUSE_IMAGE = "localhost/mpiop/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CNI_PROGRAMS = "/usr/lib/cni"
DOMAIN = "cluster.local"


def containerd_config(plan: Plan, node: Node) -> str:
    """Return containerd's configuration (version 4); paths it does not name are private to the cluster anyway."""
    restrict = "false" if plan.may_lower_oom_score else "true"
    return f"""\
version = 4
imports = []
temp = '{plan.layout.root / "tmp"}'

[plugins.'io.containerd.cri.v1.images']
snapshotter = 'overlayfs'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{PAUSE_IMAGE}'

[plugins.'io.containerd.cri.v1.runtime']
# Without CAP_SYS_RESOURCE runc cannot make a container likelier to survive than itself.
restrict_oom_score_adj = {restrict}
cdi_spec_dirs = ['/run/cdi']
enable_criu = false

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{CNI_PROGRAMS}']
conf_dir = '{plan.config(f"cni{node.suffix}")}'

[plugins.'io.containerd.internal.v1.opt']
path = '/var/lib/containerd/opt'

[plugins.'io.containerd.nri.v1.nri']
disable = true
"""


def containerd(plan: Plan, node: Node) -> Component:
    """Return the container runtime."""
    name, socket = f"containerd{node.suffix}", node.private / CONTAINERD_SOCKET.removeprefix("/")
    return Component(name, "containerd", (f"--config={plan.config(f'{name}.toml')}",), f"unix:{socket}", node=node.component)


def cni_config(node: Node) -> dict[str, Any]:
    """Return the pod network: a bridge, addresses by host-local, host ports by portmap."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]}


def kubelet_config(plan: Plan, node: Node) -> dict[str, Any]:
    """Return the KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."""
    certificate = plan.certificate
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": certificate("ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": certificate(f"kubelet{node.suffix}-serving.crt"),
        "tlsPrivateKeyFile": certificate(f"kubelet{node.suffix}-serving.key"),
        "healthzBindAddress": "0.0.0.0",  # noqa: S104 the network is the cluster's own
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "clusterDomain": DOMAIN,
        "clusterDNS": [plan.addresses.dns_service],
        "resolvConf": plan.config("resolv.conf"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.group}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": -999 if plan.may_lower_oom_score else 0,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "maxPods": 500,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "serializeImagePulls": False,
        # The disk is the host's and mostly not ours: its filling up must not drive pods away.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
    }


def kubelet(plan: Plan, node: Node) -> Component:
    """Return the node agent."""
    name = f"kubelet{node.suffix}"
    arguments = (
        f"--config={plan.config(f'{name}.json')}",
        f"--kubeconfig={plan.config(f'{name}.kubeconfig')}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        *plan.feature_gates,
    )
    return Component(name, "kubelet", arguments, f"http://{node.address}:10248/healthz", node=node.component)


def proxy_config(plan: Plan, node: Node) -> dict[str, Any]:
    """Return the KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1)."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": plan.config("kube-proxy.kubeconfig")},
        "hostnameOverride": node.name,
        "clusterCIDR": node.pods,
        "mode": "iptables",
        # Answers return the way they went even where bridged packets pass iptables by (no br_netfilter).
        "iptables": {"masqueradeAll": True, "minSyncPeriod": "0s"},
        # These settings are the whole machine's, not a network namespace's.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "oomScoreAdj": -999 if plan.may_lower_oom_score else 0,
    }


def proxy(plan: Plan, node: Node) -> Component:
    """Return the service proxy."""
    name = f"kube-proxy{node.suffix}"
    health = f"http://{node.address}:10256/healthz"
    return Component(name, "kube-proxy", (f"--config={plan.config(f'{name}.json')}",), health, node=node.component)


def corefile(plan: Plan) -> str:
    """Return CoreDNS's configuration: the cluster's names, a no remembered as long as kubeadm's does, and a quick no to all others."""
    return f"""\
{DOMAIN}:53 in-addr.arpa:53 ip6.arpa:53 {{
    bind {plan.addresses.node}
    errors
    health {plan.addresses.node}:8080
    ready {plan.addresses.node}:8181
    kubernetes {{
        kubeconfig {plan.config("coredns.kubeconfig")}
        pods verified
        ttl 30
    }}
    cache 30
    loadbalance
}}
.:53 {{
    bind {plan.addresses.node}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def coredns(plan: Plan) -> Component:
    """Return the name server; it runs next to the first node, and `kube-dns` leads to it."""
    return Component("coredns", "coredns", (f"-conf={plan.config('Corefile')}",), f"http://{plan.addresses.node}:8181/ready")


def addons(plan: Plan) -> list[dict[str, Any]]:
    """Return the objects that CoreDNS needs: its rights, and the Service by which pods find it."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:coredns"},
        "rules": [
            {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:coredns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}],
    }
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"clusterIP": plan.addresses.dns_service, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [plan.addresses.node], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [role, binding, service, endpoints]


def config_files(plan: Plan, node: Node) -> dict[str, str]:
    """Return the configuration files of a node, by name below the configuration folder."""
    end = node.suffix
    files = {
        f"kubelet{end}.json": kubelet_config(plan, node),
        f"kube-proxy{end}.json": proxy_config(plan, node),
        f"cni{end}/10-pods.conflist": cni_config(node),
    }
    texts = {name: json.dumps(content, indent=1) for name, content in files.items()}
    return {**texts, f"containerd{end}.toml": containerd_config(plan, node)}
