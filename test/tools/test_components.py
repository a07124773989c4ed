"""What the components get: arguments, configurations, certificates."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from embedded import controlplane, node, simulated
from embedded.certificates import Leaf, render_authority, render_request
from embedded.component import Component, Plan
from embedded.layout import Layout
from embedded.network import Addresses
from embedded.parts import CONTROL_PLANE, NODE, PARTS, SIMULATED
from embedded.record import Options, Record
from embedded.up import components, desired_parts, is_ready

PLAN = Plan(Layout("x", Path("/state/x")), Record(Options(), Addresses(3), programs={}), may_lower_oom_score=True)


def with_options(**options: object) -> Plan:
    return replace(PLAN, record=replace(PLAN.record, options=Options(**options)))  # type: ignore[arg-type]


def flags(component: Component) -> dict[str, str]:
    return dict(argument.removeprefix("--").split("=", 1) for argument in component.arguments)


def test_the_control_plane_alone_has_no_node() -> None:
    names = [component.name for component in components(with_options(control_plane_only=True))]
    assert names == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]


def test_a_cluster_with_all_has_all_each_once_and_the_api_server_before_its_clients() -> None:
    names = [component.name for component in components(with_options(simulated_nodes=2))]
    assert set(names) == {
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
        *("containerd", "kubelet", "kube-proxy", "coredns", "kwok"),
    }
    assert len(names) == 9
    assert names.index("kube-apiserver") < min(names.index(name) for name in ("kube-scheduler", "kubelet", "kwok"))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (Options(), (*CONTROL_PLANE, *NODE)),
        (Options(control_plane_only=True), CONTROL_PLANE),
        (Options(control_plane_only=True, simulated_nodes=1), (*CONTROL_PLANE, *SIMULATED)),
    ],
    ids=["a real node", "a control plane", "a control plane with simulated nodes"],
)
def test_only_what_is_used_is_built(options: Options, parts: tuple[str, ...]) -> None:
    assert desired_parts(options) == parts


def test_every_component_runs_a_program_that_some_part_builds() -> None:
    built = {name for part in PARTS.values() for program in part.programs for name in program.names}
    assert {component.program for component in components(with_options(simulated_nodes=1))} <= built


def test_rbac_is_on_and_the_server_speaks_for_the_cluster() -> None:
    given = flags(controlplane.apiserver(PLAN))
    assert given["authorization-mode"] == "Node,RBAC"
    assert given["advertise-address"] == "10.131.96.2"
    assert given["kubelet-preferred-address-types"] == "InternalIP"


@pytest.mark.parametrize(
    ("options", "flag", "value"),
    [
        ({"feature_gates": "A=true"}, "feature-gates", "A=true"),
        ({"runtime_config": "api/beta=true"}, "runtime-config", "api/beta=true"),
        ({"audit": True}, "audit-log-path", "/state/x/logs/audit.log"),
    ],
    ids=["feature gates", "runtime config", "audit"],
)
def test_options_become_flags_of_the_api_server(options: dict[str, object], flag: str, value: str) -> None:
    assert flag not in flags(controlplane.apiserver(PLAN))
    assert flags(controlplane.apiserver(with_options(**options)))[flag] == value


def test_admission_plugins_come_beside_the_one_that_is_always_on() -> None:
    found = [flags(controlplane.apiserver(plan))["enable-admission-plugins"] for plan in (PLAN, with_options(admission_plugins="A,B"))]
    assert found == ["NodeRestriction", "NodeRestriction,A,B"]


def test_feature_gates_reach_every_component_that_knows_them() -> None:
    plan = with_options(feature_gates="A=true")
    rendered = (
        controlplane.apiserver(plan),
        controlplane.controller_manager(plan),
        controlplane.scheduler(plan),
        node.kubelet(plan, plan.first),
    )
    assert all(flags(component)["feature-gates"] == "A=true" for component in rendered)


@pytest.mark.parametrize(("capable", "restrict", "score"), [(True, False, -999), (False, True, 0)], ids=["with", "without"])
def test_cap_sys_resource_decides_about_oom_scores(capable: bool, restrict: bool, score: int) -> None:  # noqa: FBT001 - a table
    plan = replace(PLAN, may_lower_oom_score=capable)
    runtime = tomllib.loads(node.containerd_config(plan, plan.first))["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["restrict_oom_score_adj"] is restrict
    assert node.kubelet_config(plan, plan.first)["oomScoreAdj"] == score
    assert node.proxy_config(plan, plan.first)["oomScoreAdj"] == score


def test_the_pause_image_is_ours() -> None:
    images = tomllib.loads(node.containerd_config(PLAN, PLAN.first))["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"]["sandbox"] == node.PAUSE_IMAGE


def test_no_setting_of_the_whole_machine_is_asked_for() -> None:
    conntrack = node.proxy_config(PLAN, PLAN.first)["conntrack"]
    assert (conntrack["maxPerCore"], conntrack["min"], conntrack["tcpEstablishedTimeout"]) == (0, 0, "0s")


def test_the_name_server_answers_for_the_cluster_and_refuses_the_rest_at_once() -> None:
    cluster, _, rest = node.corefile(PLAN).partition("\n.:53 {")
    assert cluster.startswith("cluster.local:53 ")
    assert "kubernetes" in cluster
    assert "template" not in cluster, "the plugin answers before the one for the cluster would"
    assert "NXDOMAIN" in rest


def test_pods_are_told_the_service_that_leads_to_the_name_server() -> None:
    service, endpoints = (thing for thing in node.addons(PLAN) if thing["metadata"]["name"] == "kube-dns")
    assert node.kubelet_config(PLAN, PLAN.first)["clusterDNS"] == [service["spec"]["clusterIP"]]
    assert endpoints["endpoints"][0]["addresses"] == [PLAN.addresses.node]
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == "kube-dns"


def test_configuration_files_are_well_formed() -> None:
    files = node.config_files(PLAN, PLAN.first)
    assert all(json.loads(text) for name, text in files.items() if name.endswith(("json", "conflist")))


def test_a_second_node_shares_no_name_file_or_address_with_the_first() -> None:
    plan = with_options(nodes=2)
    known = components(plan)
    assert len({component.name for component in known}) == len(known) == 12
    assert len({component.health for component in known}) == len(known)
    first, second = (node.config_files(plan, each) for each in plan.nodes)
    assert not first.keys() & second.keys()
    assert not {*first.values()} & {*second.values()}
    files = [leaf.file for leaf in controlplane.leaves(plan)]
    assert len(set(files)) == len(files)
    assert {leaf.common_name for leaf in controlplane.leaves(plan)} >= {"system:node:mpiop-x", "system:node:mpiop-x-2"}


def test_the_simulator_keeps_its_hands_off_real_nodes() -> None:
    given = flags(simulated.kwok(PLAN))
    assert given["manage-all-nodes"] == "false"
    key, value = given["manage-nodes-with-label-selector"].split("=")
    assert simulated.simulated_node(0, tainted=True)["metadata"]["labels"][key] == value


@pytest.mark.parametrize("tainted", [True, False])
def test_simulated_nodes_are_tainted_beside_a_real_one(tainted: bool) -> None:  # noqa: FBT001 - a table
    assert bool(simulated.simulated_node(7, tainted=tainted)["spec"].get("taints")) is tainted


READY = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("thing", "ready"),
    [
        ({"spec": {}, "status": {"conditions": [READY]}}, True),
        ({"spec": {}, "status": {"conditions": [{**READY, "status": "False"}]}}, False),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}, "status": {"conditions": [READY]}}, False),
        ({"spec": {"taints": [{"key": "kwok.x-k8s.io/node"}]}, "status": {"conditions": [READY]}}, True),
        ({"spec": {}, "status": {}}, False),
        ({"kind": "Status", "status": "Failure"}, False),
    ],
    ids=["ready", "not ready", "the taint has not gone yet", "a taint of its own", "never reported", "no node"],
)
def test_is_ready(thing: dict[str, object], ready: bool) -> None:  # noqa: FBT001 - a table
    assert is_ready(thing) is ready


def test_a_servers_certificate_names_the_server_and_a_clients_names_nobody() -> None:
    server = render_request(Leaf("a", "a", names=("DNS:a", "IP:10.0.0.1")))
    assert "extendedKeyUsage = serverAuth\n" in server
    assert "subjectAltName = DNS:a,IP:10.0.0.1\n" in server
    client = render_request(Leaf("b", "b", "system:masters"))
    assert "extendedKeyUsage = clientAuth\n" in client
    assert "O = system:masters\n" in client
    assert "subjectAltName" not in client
    assert all("keyUsage = critical," in text for text in (server, client, render_authority("ca")))


def test_the_api_servers_certificate_holds_every_name_that_clients_use() -> None:
    names = next(leaf.names for leaf in controlplane.leaves(PLAN) if leaf.file == "apiserver")
    desired = {"DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local", "IP:10.131.64.1", "IP:10.131.96.2", "IP:127.0.0.1"}
    assert desired <= set(names)
