"""Which addresses of workers are published to the launcher's pod, and when."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from example_children import TERMINATING, launcher, launcher_pod, observed, worker
from example_jobs import PI, with_workers
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.plan.addresses import addresses_to_publish, annotations_to_publish
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.status import next_status
from mpiop.kube.objects import Object

ANNOTATION = "mpiop.kubeflow.org/addresses"
BEGAN_WITH = "mpiop.kubeflow.org/began-with"
UNREADY = [{"type": "Ready", "status": "False"}]
LINES = "0 10.0.0.1\n1 10.0.0.2\n"
BOTH = f"workers 2\n{LINES}"
HOLD = None
"""Nothing is to be published."""


def at(index: int, address: str = "", phase: str = "Running", **fields: Any) -> Object:
    """Return a worker with an address of its own; a running one is Ready."""
    return worker(index, phase, podIP=address or f"10.0.0.{index + 1}", **fields)


def published(addresses: str | None = "", phase: str = "Running", node: str = "node-1", **metadata: Any) -> Object:
    """Return the launcher's pod, with `addresses` published; None: made without the annotation."""
    annotations = {} if addresses is None else {ANNOTATION: addresses}
    if addresses:
        annotations[BEGAN_WITH] = "0 2 2026-01-01T00:00:00Z"
    pod = launcher_pod(phase, metadata={"annotations": annotations, **metadata})
    pod["spec"] = {"nodeName": node} if node else {}
    return pod


UNPUBLISHED = published()


class Case(NamedTuple):
    """A situation, and what is to be published below the number of workers."""

    id: str
    workers: tuple[Object, ...]
    want: str | None
    launcher: Object = UNPUBLISHED
    job: MPIJob = PI


SUCCEEDED = replace(
    PI,
    status=next_status(
        launcher_attempt(PI, observed(launcher=launcher(outcome={"type": "Complete"}))), None, datetime(2026, 1, 1, tzinfo=UTC)
    ),
)
CASES = [
    # Nothing before all can be reached.
    Case("no worker yet", (), HOLD),
    Case("one is missing", (at(0),), HOLD),
    Case("one is not Ready", (at(0), at(1, conditions=UNREADY)), HOLD),
    Case("one has no address", (at(0), worker(1)), HOLD),
    Case("one is going", (at(0), at(1, metadata=TERMINATING)), HOLD),
    Case("the launcher has no node, so nobody reads it", (at(0), at(1)), HOLD, published(node="")),
    Case("all are Ready", (at(0), at(1)), LINES),
    Case("all are Ready before the launcher's container runs", (at(0), at(1)), LINES, published(phase="Pending")),
    Case("version 6", (at(0, "fd00::1"), at(1, "fd00::2")), "0 fd00::1\n1 fd00::2\n"),
    Case("one has ended before it was reached", (at(0), at(1, phase="Failed")), "0 10.0.0.1\n1 ended\n"),
    Case("one was rejected, and is created again", (at(0), worker(1, "Failed", reason="OutOfcpu")), HOLD),
    Case("one is rejected later", (at(0), worker(1, "Failed", reason="OutOfcpu")), "0 10.0.0.1\n", published(BOTH)),
    Case("a worker too many is not published", (at(0), at(1), at(2)), LINES),
    # Then each by itself.
    Case("all is published", (at(0), at(1)), LINES, published(BOTH)),
    Case("one is gone", (at(0),), "0 10.0.0.1\n", published(BOTH)),
    Case("all are gone", (), "", published(BOTH)),
    Case("one is going, Ready or not", (at(0), at(1, metadata=TERMINATING)), "0 10.0.0.1\n", published(BOTH)),
    Case("its replacement has no address", (at(0), worker(1, "Pending")), "0 10.0.0.1\n", published(BOTH)),
    Case("its replacement is not Ready", (at(0), at(1, "10.0.0.9", conditions=UNREADY)), "0 10.0.0.1\n", published(BOTH)),
    Case("its replacement is Ready", (at(0), at(1, "10.0.0.9")), "0 10.0.0.1\n1 10.0.0.9\n", published(BOTH)),
    Case("and comes after its line was withdrawn", (at(0), at(1, "10.0.0.9")), "0 10.0.0.1\n1 10.0.0.9\n", published("0 10.0.0.1\n")),
    Case("a withdrawn one comes back only when Ready", (at(0), at(1, conditions=UNREADY)), "0 10.0.0.1\n", published("0 10.0.0.1\n")),
    Case("one is not Ready for a while", (at(0), at(1, conditions=UNREADY)), LINES, published(BOTH)),
    Case("one has ended", (at(0), at(1, phase="Succeeded")), "0 10.0.0.1\n1 ended\n", published(BOTH)),
    Case("one has ended and is replaced", (at(0), at(1, "10.0.0.9")), "0 10.0.0.1\n1 10.0.0.9\n", published("0 10.0.0.1\n1 ended\n")),
    Case("it ended and is going", (at(0), at(1, phase="Failed", metadata=TERMINATING)), "0 10.0.0.1\n", published("0 10.0.0.1\n1 ended\n")),
    Case("scaled up, the new one is not there", (at(0), at(1)), LINES, published(BOTH), with_workers(PI, 3)),
    Case("scaled up, the new one is Ready", (at(0), at(1), at(2)), f"{LINES}2 10.0.0.3\n", published(BOTH), with_workers(PI, 3)),
    Case("scaled down", (at(0), at(1)), "0 10.0.0.1\n", published(BOTH), with_workers(PI, 1)),
    # To nobody.
    Case("the launcher's pod shows none: another operator made it, or the user's mount covers it", (at(0), at(1)), HOLD, published(None)),
    Case("the launcher has ended", (at(0),), HOLD, published(BOTH, "Succeeded")),
    Case("the launcher is going", (at(0),), HOLD, published(BOTH, **TERMINATING)),
    Case("the job is suspended", (at(0),), HOLD, published(BOTH), replace(PI, run_policy=RunPolicy(suspend=True))),
    Case("the job has ended", (at(0),), HOLD, published(BOTH), SUCCEEDED),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_published(case: Case) -> None:
    want = case.want and f"workers {case.job.worker_replicas}\n{case.want}"
    assert addresses_to_publish(case.job, observed(*case.workers, launcher_pods=(case.launcher,))) == want


def test_there_is_nobody_before_the_launcher_has_a_pod() -> None:
    assert addresses_to_publish(PI, observed(at(0), at(1))) is None


def test_addresses_are_published_again_for_a_launcher_that_is_tried_again() -> None:
    failed = published(BOTH, "Failed", creationTimestamp="2026-01-01T00:00:00Z")
    again = published("", creationTimestamp="2026-01-01T00:00:01Z")
    assert addresses_to_publish(PI, observed(at(0), at(1), launcher_pods=(failed, again))) == BOTH
    assert addresses_to_publish(PI, observed(at(0), launcher_pods=(failed, again))) is None


@pytest.mark.parametrize(("replicas", "is_by_name"), [(4000, False), (6000, True)])
@pytest.mark.parametrize("before", ["", "by-name\n"])
def test_more_than_an_annotation_holds_is_found_by_name(replicas: int, before: str, *, is_by_name: bool) -> None:
    one, job = at(0, "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff"), with_workers(PI, replicas)
    workers = dict.fromkeys(job.worker_names, one)
    found = addresses_to_publish(job, replace(observed(launcher_pods=(published(before),)), workers=workers))
    assert found is not None
    assert (found == "by-name\n") == is_by_name
    assert len(found) <= 200 * 1024


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PUBLISHED_AT = "mpiop.kubeflow.org/addresses-published-at"


@pytest.mark.parametrize(
    ("published_at", "seconds", "changes"),
    [
        (None, None, {}),
        ("2026-01-01T12:00:00Z", 2.0, {}),
        ("2026-01-01T11:59:59Z", 1.0, {}),
        ("2026-01-01T11:59:58Z", 0.0, {PUBLISHED_AT: None}),
        ("2026-01-01T12:00:30Z", 2.0, {}),  # by a clock that is ahead
        ("yesterday", 0.0, {PUBLISHED_AT: None}),
    ],
)
def test_a_kubelet_is_made_to_read_addresses_a_second_time(
    published_at: str | None, seconds: float | None, changes: dict[str, None]
) -> None:
    pod = published(BOTH)
    if published_at is not None:
        pod["metadata"]["annotations"][PUBLISHED_AT] = published_at
    observation = observed(at(0), at(1), launcher_pods=(pod,))
    assert annotations_to_publish(BOTH, observation, launcher_attempt(PI, observation).beginning_to_note, NOON) == (changes, seconds)


def test_when_addresses_were_changed_is_noted() -> None:
    observation = observed(at(0), at(1), launcher_pods=(UNPUBLISHED,))
    noted = {PUBLISHED_AT: "2026-01-01T12:00:00Z", BEGAN_WITH: "0 2 2026-01-01T00:00:00Z"}
    beginning = launcher_attempt(PI, observation).beginning_to_note
    text = addresses_to_publish(PI, observation)
    assert annotations_to_publish(text, observation, beginning, NOON) == (
        {ANNOTATION: BOTH, **noted},
        None,
    )
