"""`up`: from nothing, or from what a crash left, to a cluster that is ready."""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from embedded import build, control, controlplane, health, interrupts, machine, network, node, packages, parts, second_node, simulated
from embedded.api import NOT_FOUND, OK, ApiClient
from embedded.certificates import make_certificates
from embedded.cgroups import Group, group_name, read_hierarchies
from embedded.component import SECOND_NODE, Component, Node, Plan, node_name
from embedded.down import destroy, interface_alias
from embedded.errors import ClusterError
from embedded.images import load_stream, pause_archive
from embedded.kubeconfig import render_kubeconfig
from embedded.layout import HACK, Layout, cache_folder
from embedded.progress import Progress
from embedded.record import Options, Record, read_record, write_record

START_SECONDS = 60
POLL_SECONDS = 0.05
USERS = ("kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "kwok")
# Others end when they do not find these.
FIRST = ("kube-apiserver", SECOND_NODE, "containerd-2")


def up(layout: Layout, options: Options, progress: Progress) -> Record:
    """Make the cluster of `layout` be up with `options`, and return its record.

    Raises:
        ClusterError: It is up with other options, or could not be made; then nothing is left of it.
    """
    machine.check_machine(layout.root.parent, options.nodes)
    desired = {**packages.CONTROL_PLANE, **packages.BUILD, **({} if options.control_plane_only else packages.NODE)}
    packages.install(packages.missing_packages(desired), progress)
    record = read_record(layout)
    if record and record.ready and control.supervisor_pid(layout):
        return _again(layout, record, options, progress)
    progress.expect(2 + (0 if options.control_plane_only else options.nodes) + bool(options.simulated_nodes))
    build.build(desired_parts(options), progress)
    if layout.root.exists():
        progress.say(f"Cleaning up what an earlier cluster {layout.name!r} left")
        destroy(layout)
    try:
        return _create(layout, options, progress)
    except BaseException:
        with interrupts.deferred():
            destroy(layout)
        raise


def desired_parts(options: Options) -> tuple[str, ...]:
    """Return the names of the parts that a cluster with `options` is made of."""
    real = () if options.control_plane_only else parts.NODE
    return (*parts.CONTROL_PLANE, *real, *(parts.SIMULATED if options.simulated_nodes else ()))


def plan_of(layout: Layout, record: Record) -> Plan:
    """Return what the components of a cluster are rendered from."""
    return Plan(layout, record, may_lower_oom_score=machine.capable(machine.CAP_SYS_RESOURCE))


def components(plan: Plan) -> list[Component]:
    """Return all components of a cluster, in the order in which they start."""
    options = plan.record.options
    before = [controlplane.etcd(plan), controlplane.apiserver(plan)]
    after = [controlplane.controller_manager(plan), controlplane.scheduler(plan)]
    if options.simulated_nodes:
        after.append(simulated.kwok(plan))
    if options.control_plane_only:
        return before + after
    first = plan.first
    real = [*before, node.containerd(plan, first), *after, node.kubelet(plan, first), node.proxy(plan, first), node.coredns(plan)]
    return [*real, *(second_components(plan) if options.nodes > 1 else ())]


def second_components(plan: Plan) -> list[Component]:
    """Return the components of the second node, in the order in which they start."""
    parts_of = (node.containerd, node.kubelet, node.proxy)
    return [second_node.second_node(plan, cache_folder()), *(part(plan, plan.second) for part in parts_of)]


def _again(layout: Layout, record: Record, options: Options, progress: Progress) -> Record:
    """Bring a running cluster to `options`: what ended is started again, simulated nodes are added (never removed)."""
    if dataclasses.replace(options, simulated_nodes=0) != dataclasses.replace(record.options, simulated_nodes=0):
        raise ClusterError(f"cluster {layout.name!r} is up with other options; run first: hack/cluster down --name {layout.name}")
    if options.simulated_nodes > record.options.simulated_nodes:
        build.build(parts.SIMULATED, progress)
        record = dataclasses.replace(record, options=options, programs={**record.programs, **build.programs_of(parts.SIMULATED)})
        write_record(layout, record)
    plan = plan_of(layout, record)
    for component in components(plan):
        control.start(layout, record, component)
        if component.name in FIRST:
            health.wait_until_healthy(layout, component, START_SECONDS)
    for component in components(plan):
        health.wait_until_healthy(layout, component, START_SECONDS)
    for each in [] if options.control_plane_only else plan.nodes:
        _await_node(plan, each)
    if record.options.simulated_nodes:
        _add_simulated_nodes(plan)
    return record


def _create(layout: Layout, options: Options, progress: Progress) -> Record:
    with progress.step("namespaces, network, certificates"):
        for folder in (layout.logs, layout.config, layout.bin, layout.root / "tmp"):
            folder.mkdir(parents=True)
        layout.root.chmod(0o711)
        privates = (layout.private, layout.second_private)[: options.nodes]
        for private, name in itertools.product(privates, ("run/lock", "var-lib", "var-log")):
            (private / name).mkdir(parents=True)
        (layout.config / "resolv.conf").write_text("", encoding="ascii")
        group = Group(read_hierarchies(), group_name(layout.root))
        group.create()
        process = _start_supervisor(layout, group)
        addresses = network.join(process, interface_alias(layout))
        record = Record(options, addresses.index, build.programs_of(desired_parts(options)))
        write_record(layout, record)
        plan = plan_of(layout, record)
        make_certificates(layout.certificates, controlplane.leaves(plan))
        _write_configuration(plan)
    with progress.step("control plane"):
        _start_control_plane(plan)
    if not options.control_plane_only:
        with progress.step("node"):
            health.wait_until_healthy(layout, node.coredns(plan), START_SECONDS)
            _await_node(plan, plan.first)
    if options.nodes > 1:
        with progress.step("second node"):
            _start_second_node(plan)
            _await_node(plan, plan.second)
    if options.simulated_nodes:
        with progress.step(f"{options.simulated_nodes} simulated nodes"):
            _add_simulated_nodes(plan)
    ready = dataclasses.replace(record, ready=True)
    write_record(layout, ready)
    return ready


def _start_supervisor(layout: Layout, group: Group) -> int:
    command = [sys.executable, "-m", "embedded.supervisor", str(layout.root), str(cache_folder()), node_name(layout.name)]
    # In its group before it is a program of its own: so a `down` at any moment finds it there.
    with layout.log("supervisor").open("ab") as log, interrupts.deferred():
        process = subprocess.Popen(
            command,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(HACK), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=group.enter,  # noqa: PLW1509 - it only writes to files
        )
    pid = control.wait_for_supervisor(layout, process, START_SECONDS)
    process.wait()
    return pid


def _write_configuration(plan: Plan) -> None:
    layout, server = plan.layout, controlplane.api_url(plan)
    name = node_name(layout.name)
    for user in (*USERS, *(f"kubelet{each.suffix}" for each in plan.nodes)):
        text = render_kubeconfig(layout.certificates, user, server, name)
        (layout.config / f"{user}.kubeconfig").write_text(text, encoding="utf-8")
    layout.kubeconfig.write_text(render_kubeconfig(layout.certificates, "admin", server, name), encoding="utf-8")
    layout.kubeconfig.chmod(0o600)
    (layout.config / "resolv.conf").write_text(f"nameserver {plan.addresses.node}\n", encoding="ascii")
    (layout.config / "audit-policy.json").write_text(json.dumps(controlplane.AUDIT_POLICY), encoding="utf-8")
    (layout.config / "stages.yaml").write_text(simulated.STAGES.read_text(encoding="utf-8"), encoding="utf-8")
    (layout.config / "Corefile").write_text(node.corefile(plan), encoding="utf-8")
    for each in plan.nodes:
        (layout.config / f"cni{each.suffix}").mkdir()
        for file, text in node.config_files(plan, each).items():
            (layout.config / file).write_text(text, encoding="utf-8")
    for program in ("kubectl", "ctr"):
        if program in plan.record.programs:
            (layout.bin / program).symlink_to(plan.record.programs[program])


def _start_control_plane(plan: Plan) -> None:
    layout, record = plan.layout, plan.record
    everything = components(plan)
    first = [component for component in everything if component.name in {"etcd", "kube-apiserver", "containerd"}]
    for component in first:
        control.start(layout, record, component)
    if not record.options.control_plane_only:
        health.wait_until_healthy(layout, node.containerd(plan, plan.first), START_SECONDS)
        _load_pause_image(plan, plan.first)
    health.wait_until_healthy(layout, controlplane.apiserver(plan), START_SECONDS)
    later = [component for component in everything if component not in first and component not in second_components(plan)]
    for component in later:
        control.start(layout, record, component)
    with ApiClient(layout, plan.addresses.node, controlplane.API_PORT) as api:
        if not record.options.control_plane_only:
            for thing in node.addons(plan):
                api.create(thing)
        # Pods are refused until the controller manager has made this account.
        _await(api, "/api/v1/namespaces/default/serviceaccounts/default", "the service account of pods")
    for component in (controlplane.controller_manager(plan), controlplane.scheduler(plan)):
        health.wait_until_healthy(layout, component, START_SECONDS)


def _start_second_node(plan: Plan) -> None:
    network.route_to_second_node(plan.addresses)
    for component in second_components(plan):
        control.start(plan.layout, plan.record, component)
        if component.name in FIRST:
            health.wait_until_healthy(plan.layout, component, START_SECONDS)
        if component.program == "containerd":
            _load_pause_image(plan, plan.second)


def _load_pause_image(plan: Plan, where: Node) -> None:
    layout, record = plan.layout, plan.record
    archive = pause_archive(Path(record.programs["pause"]).read_bytes(), node.PAUSE_IMAGE, os.uname().machine)
    with (layout.root / "tmp" / "pause.tar").open("w+b") as stream:
        stream.write(archive)
        stream.seek(0)
        load_stream(layout, record, stream, "the pause image", where.component)


def _await(api: ApiClient, path: str, what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while (answer := api.request("GET", path))[0] != OK:
        if answer[0] != NOT_FOUND or time.monotonic() > deadline:
            raise ClusterError(f"{what} did not come: {answer[0]} {answer[1].get('message')}")
        time.sleep(POLL_SECONDS)


def _await_node(plan: Plan, awaited: Node) -> None:
    kubelet = node.kubelet(plan, awaited)
    for component in (kubelet, node.proxy(plan, awaited)):
        health.wait_until_healthy(plan.layout, component, START_SECONDS)
    deadline = time.monotonic() + START_SECONDS
    with ApiClient(plan.layout, plan.addresses.node, controlplane.API_PORT) as api:
        while not is_ready(api.request("GET", f"/api/v1/nodes/{awaited.name}")[1]):
            if time.monotonic() > deadline:
                reason = health.last_words(plan.layout, kubelet.name)
                raise ClusterError(
                    f"node {awaited.name} is not Ready after {START_SECONDS} s: {reason}; see: hack/cluster logs {kubelet.name}"
                )
            time.sleep(POLL_SECONDS)


def is_ready(thing: dict[str, object]) -> bool:
    """Return whether a Node object is Ready and pods may be put on it."""
    status, spec = thing.get("status"), thing.get("spec")
    if not isinstance(status, dict) or not isinstance(spec, dict):
        return False
    taints = [taint["key"] for taint in spec.get("taints", ())]
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions", ()))
    return ready and "node.kubernetes.io/not-ready" not in taints


def _add_simulated_nodes(plan: Plan) -> None:
    desired = plan.record.options.simulated_nodes
    with ApiClient(plan.layout, plan.addresses.node, controlplane.API_PORT) as api:
        for index in range(desired):
            api.create(simulated.simulated_node(index, tainted=not plan.record.options.control_plane_only))
        deadline = time.monotonic() + START_SECONDS + desired / 10
        path = f"/api/v1/nodes?labelSelector={simulated.LABEL.replace('=', '%3D')}"
        while (ready := sum(is_ready(thing) for thing in api.request("GET", path)[1]["items"])) < desired:
            if time.monotonic() > deadline:
                raise ClusterError(f"only {ready} of {desired} simulated nodes are Ready: {health.last_words(plan.layout, 'kwok')}")
            time.sleep(POLL_SECONDS * 4)
