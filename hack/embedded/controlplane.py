"""Arguments and certificates of etcd, the API server, the controller manager and the scheduler."""

from embedded.certificates import Leaf
from embedded.component import Component, Node, Plan

API_PORT = 6443
ETCD_PORT, ETCD_METRICS_PORT = 2379, 2381
# Simulated nodes bring thousands of pods: the clients' own limits (20 and 50 a second) would be all that is measured.
CLIENT_RATE = ("--kube-api-qps=1000", "--kube-api-burst=2000")
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}


def leaves(plan: Plan) -> list[Leaf]:
    """Return the certificates of the control plane, the administrator and the nodes' parts."""
    addresses, node = plan.addresses, plan.node
    kubelets = [leaf for each in plan.nodes for leaf in _kubelet_leaves(each)]
    api_names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", node)
    api_addresses = ("127.0.0.1", addresses.api_service, addresses.node)
    serving = (*(f"DNS:{name}" for name in api_names), *(f"IP:{address}" for address in api_addresses))
    return [
        Leaf("apiserver", "kube-apiserver", names=serving),
        Leaf("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
        Leaf("front-proxy-client", "front-proxy-client", authority="front-proxy-ca"),
        Leaf("admin", "kubernetes-admin", "system:masters"),
        Leaf("kube-controller-manager", "system:kube-controller-manager"),
        Leaf("kube-scheduler", "system:kube-scheduler"),
        Leaf("kube-proxy", "system:kube-proxy"),
        Leaf("coredns", "system:coredns"),
        Leaf("kwok", "kwok", "system:masters"),
        *kubelets,
    ]


def _kubelet_leaves(node: Node) -> list[Leaf]:
    user, group = f"system:node:{node.name}", "system:nodes"
    names = (f"DNS:{node.name}", f"IP:{node.address}", "IP:127.0.0.1")
    return [Leaf(f"kubelet{node.suffix}", user, group), Leaf(f"kubelet{node.suffix}-serving", user, group, names)]


def api_url(plan: Plan) -> str:
    """Return where the API server answers, for the host and for the components alike."""
    return f"https://{plan.addresses.node}:{API_PORT}"


def etcd(plan: Plan) -> Component:
    """Return the database. Its loss with the machine does not matter here, so it does not wait for the disk."""
    client = f"http://127.0.0.1:{ETCD_PORT}"
    arguments = (
        "--name=etcd",
        f"--data-dir={plan.layout.root / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--initial-advertise-peer-urls=http://127.0.0.1:2380",
        "--initial-cluster=etcd=http://127.0.0.1:2380",
        f"--listen-metrics-urls=http://0.0.0.0:{ETCD_METRICS_PORT}",
        "--unsafe-no-fsync",
        # The only member need not wait up to two seconds for the votes of others.
        "--heartbeat-interval=20",
        "--election-timeout=200",
        "--quota-backend-bytes=8589934592",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=5m",
        "--log-level=warn",
    )
    return Component("etcd", "etcd", arguments, f"http://{plan.addresses.node}:{ETCD_METRICS_PORT}/health")


def apiserver(plan: Plan) -> Component:
    """Return the API server, with RBAC, service account tokens and the aggregation layer."""
    options, certificate = plan.record.options, plan.certificate
    arguments = [
        f"--advertise-address={plan.addresses.node}",
        f"--secure-port={API_PORT}",
        f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
        f"--service-cluster-ip-range={plan.addresses.services}",
        f"--client-ca-file={certificate('ca.crt')}",
        f"--tls-cert-file={certificate('apiserver.crt')}",
        f"--tls-private-key-file={certificate('apiserver.key')}",
        f"--kubelet-certificate-authority={certificate('ca.crt')}",
        f"--kubelet-client-certificate={certificate('apiserver-kubelet-client.crt')}",
        f"--kubelet-client-key={certificate('apiserver-kubelet-client.key')}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={certificate('service-accounts.pub')}",
        f"--service-account-signing-key-file={certificate('service-accounts.key')}",
        f"--requestheader-client-ca-file={certificate('front-proxy-ca.crt')}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={certificate('front-proxy-client.crt')}",
        f"--proxy-client-key-file={certificate('front-proxy-client.key')}",
        "--authorization-mode=Node,RBAC",
        f"--enable-admission-plugins={','.join(filter(None, ('NodeRestriction', options.admission_plugins)))}",
        "--allow-privileged=true",
        # Asked to end, it notifies its clients, waits for requests under way, and cuts watches: 2 seconds instead of 60.
        "--shutdown-send-retry-after=true",
        *plan.feature_gates,
    ]
    if options.runtime_config:
        arguments.append(f"--runtime-config={options.runtime_config}")
    if options.audit:
        arguments += [
            f"--audit-policy-file={plan.config('audit-policy.json')}",
            f"--audit-log-path={plan.layout.log('audit')}",
            "--audit-log-mode=batch",
            "--audit-log-batch-max-wait=1s",
        ]
    return Component("kube-apiserver", "kube-apiserver", tuple(arguments), f"{api_url(plan)}/readyz", own_user=True)


def controller_manager(plan: Plan) -> Component:
    """Return the controller manager with all of the controllers that are on by default."""
    certificate = plan.certificate
    own = (
        f"--root-ca-file={certificate('ca.crt')}",
        f"--cluster-signing-cert-file={certificate('ca.crt')}",
        f"--cluster-signing-key-file={certificate('ca.key')}",
        f"--service-account-private-key-file={certificate('service-accounts.key')}",
        "--use-service-account-credentials=true",
    )
    return _client(plan, "kube-controller-manager", 10257, own)


def scheduler(plan: Plan) -> Component:
    """Return the default scheduler."""
    return _client(plan, "kube-scheduler", 10259)


def _client(plan: Plan, name: str, port: int, own: tuple[str, ...] = ()) -> Component:
    """Return a client of the API server that runs once, has its health at `port`, and takes its `own` arguments too."""
    kubeconfig = plan.config(f"{name}.kubeconfig")
    arguments = (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--tls-cert-file={plan.certificate('apiserver.crt')}",
        f"--tls-private-key-file={plan.certificate('apiserver.key')}",
        *own,
        "--leader-elect=false",
        *CLIENT_RATE,
        *plan.feature_gates,
    )
    return Component(name, name, arguments, f"https://{plan.addresses.node}:{port}/healthz", own_user=True)
