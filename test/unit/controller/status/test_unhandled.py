"""Waits that nothing explains."""

from dataclasses import replace
from typing import cast

import pytest

from example_children import launcher, worker
from example_jobs import PI
from fakes.semantics import projected
from mpiop.api.types import MPIJob
from mpiop.controller.observe import projections
from mpiop.controller.status.unhandled import unhandled_problem
from mpiop.kube.objects import Object


def test_a_job_controller_that_may_back_off_after_failures_is_not_reported() -> None:
    assert unhandled_problem(launcher(failed=4), is_queued=False) is None


TOPOLOGY = "kueue.x-k8s.io/topology"
QUEUED = replace(PI, raw={**PI.raw, "metadata": {**PI.raw["metadata"], "labels": {"kueue.x-k8s.io/queue-name": "gpus"}}})


@pytest.mark.parametrize(
    ("job", "gates", "named"),
    [
        (PI, ["example.com/never"], "example.com/never"),
        (PI, ["a.com/one", "b.com/two"], "a.com/one, b.com/two"),
        (PI, [TOPOLOGY], TOPOLOGY),
        (QUEUED, [TOPOLOGY], None),
        (QUEUED, [TOPOLOGY, "example.com/never"], "example.com/never"),
    ],
    ids=["one", "several", "Kueue's, of a job without a queue", "Kueue's, of a job in its queue", "Kueue's and another"],
)
def test_a_scheduling_gate_is_named_unless_kueue_will_remove_it(job: MPIJob, gates: list[str], named: str | None) -> None:
    status = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    pod = {**worker(0, "Pending"), "spec": {"schedulingGates": [{"name": gate} for gate in gates]}, "status": status}
    found = unhandled_problem(cast("Object", projected(pod, projections.Pod)), is_queued=job.is_queued)
    assert (found and (found.reason, found.message.partition(". ")[0])) == (
        named and ("SchedulingGated", f"pod pi-worker-0 has the scheduling gate {named}")
    )
