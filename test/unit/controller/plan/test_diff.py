"""The writes that close a gap, and those that are not made."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from example_children import OPTIONS, TERMINATING, config_map, launcher, launcher_pod, observed, service, worker
from example_jobs import PI
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.objects.config_map import with_digests
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.addresses import addresses_to_publish, annotations_to_publish
from mpiop.controller.plan.desired import desired_state
from mpiop.controller.plan.diff import Action, Create, Delete, Patch, addresses_stages, diff
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.kube.objects import Object

RUNNING = observed(worker(0), worker(1), launcher=launcher(), launcher_pods=(launcher_pod(),))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def writes(job: MPIJob, observation: Observed) -> list[str]:
    """Return the writes as `verb name body`, a bar between stages."""
    desired = desired_state(launcher_attempt(job, observation), NOON)
    assert desired is not None
    lines: list[str] = []
    annotations, _ = annotations_to_publish(addresses_to_publish(job, observation), observation, desired.beginning, NOON)
    addresses = addresses_stages(observation.launcher_pod, annotations)
    stages = [*diff(job, desired, observation, secret_uid="secret", options=OPTIONS), *addresses]
    for stage in sorted(stages, key=lambda stage: stage.step):
        lines += [*(["|"] if lines else []), *map(line, stage.actions)]
    return lines


def line(action: Action) -> str:
    match action:
        case Create():
            assert action.build()["metadata"]["name"] == action.key.name
            return f"create {action.key.name}"
        case Patch():
            return f"patch {action.key.name} {action.body}"
        case Delete():
            return f"delete {action.key.name}"


class Case(NamedTuple):
    id: str
    job: MPIJob
    observation: Observed
    want: list[str]


def changed_hostfile() -> Object:
    """Return the ConfigMap with a hostfile that is not ours, and a file that nobody asked for."""
    obj = config_map("pi-worker-0", "pi-worker-1")
    return {**obj, "data": {**obj.get("data", {}), "hostfile": "elsewhere", "other": "x"}}


ALL_HOSTS = (
    "patch pi-config {'data': {'discover_hosts.sh': '#!/bin/sh\\necho pi-worker-0.pi.default.svc\\necho pi-worker-1.pi.default.svc\\n'}}"
)
CASES = [
    Case("all as it should be", PI, RUNNING, []),
    Case(
        "new", PI, Observed(), ["create pi", "create pi-config", "|", "create pi-worker-0", "create pi-worker-1", "|", "create pi-launcher"]
    ),
    Case(
        "a worker is missing",
        PI,
        observed(worker(1), launcher=launcher()),
        [
            "patch pi-config {'data': {'discover_hosts.sh': '#!/bin/sh\\necho pi-worker-1.pi.default.svc\\n'}}",
            "|",
            "create pi-worker-0",
        ],
    ),
    Case(
        "a worker on its way out still has its name",
        PI,
        observed(worker(0, metadata=TERMINATING), worker(1), launcher=launcher()),
        ["patch pi-config {'data': {'discover_hosts.sh': '#!/bin/sh\\necho pi-worker-1.pi.default.svc\\n'}}"],
    ),
    Case(
        "a Service that somebody gave an address",
        PI,
        replace(RUNNING, service={**service(), "spec": {**service()["spec"], "clusterIP": "10.0.0.1"}}),
        ["delete pi"],
    ),
    Case("surplus workers go", PI, observed(worker(0), worker(1), worker(2), launcher=launcher()), ["delete pi-worker-2"]),
    Case("but not twice", PI, observed(worker(0), worker(1), worker(2, metadata=TERMINATING), launcher=launcher()), []),
    Case(
        "a list of hosts that somebody has changed",
        PI,
        replace(RUNNING, config_map=with_digests(changed_hostfile())),
        ["patch pi-config {'data': {'hostfile': 'pi-worker-0.pi.default.svc slots=1\\npi-worker-1.pi.default.svc slots=1\\n'}}"],
    ),
    Case(
        "the list of hosts follows",
        PI,
        replace(RUNNING, config_map=with_digests(config_map("pi-worker-0"))),
        [ALL_HOSTS],
    ),
    Case(
        "a dependency on its way out is waited for",
        PI,
        replace(RUNNING, service=service() | {"metadata": service()["metadata"] | {"labels": {}, **TERMINATING}}),
        [],
    ),
    Case(
        "suspended",
        replace(PI, run_policy=RunPolicy(suspend=True)),
        replace(RUNNING, launcher_pods=()),
        ["patch pi-launcher {'spec': {'suspend': True}}", "|", "delete pi-worker-0", "delete pi-worker-1"],
    ),
    Case(
        "a launcher without our label is labelled",
        PI,
        replace(RUNNING, launcher=launcher() | {"metadata": launcher()["metadata"] | {"labels": {"app": "pi"}}}),
        [
            (
                "patch pi-launcher {'metadata': {'labels': {"
                "'training.kubeflow.org/operator-name': 'mpi-operator', 'training.kubeflow.org/job-name': 'pi'}}}"
            )
        ],
    ),
    Case(
        "a launcher on its way out is waited for",
        PI,
        replace(RUNNING, launcher=launcher() | {"metadata": launcher()["metadata"] | {"labels": {}, **TERMINATING}}),
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_writes(case: Case) -> None:
    assert writes(case.job, case.observation) == case.want


def test_a_launcher_that_is_unsuspended_now_finds_all_hosts() -> None:
    hosts, bar, unsuspend = writes(
        PI, replace(RUNNING, config_map=with_digests(config_map("pi-worker-0")), launcher=launcher(suspend=True), launcher_pods=())
    )
    assert (hosts, bar) == (ALL_HOSTS, "|")
    assert "'suspend': False" in unsuspend


def test_a_foreign_key_in_the_selector_is_removed() -> None:
    tampered = service()
    tampered["spec"] = {**tampered["spec"], "selector": {**tampered["spec"]["selector"], "extra": "1"}}
    assert writes(PI, replace(RUNNING, service=tampered)) == ["patch pi {'spec': {'selector': {'extra': None}}}"]


def test_what_the_server_adds_is_left_alone() -> None:
    defaulted = service()
    defaulted["spec"] = {**defaulted["spec"], "clusterIPs": ["None"], "type": "ClusterIP", "ipFamilies": ["IPv4"]}
    del defaulted["spec"]["publishNotReadyAddresses"]
    assert writes(PI, replace(RUNNING, service=defaulted)) == []
