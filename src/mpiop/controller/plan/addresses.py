"""The addresses of the workers, for the annotation of the launcher pod that the ssh script reads.

A line `workers <count>` comes first, by which ssh stops waiting for a worker that was scaled away. Then comes a line `<index> <address>`
for each worker that can be reached.

The first addresses are published together, once every worker is Ready; later changes one by one. The line of a worker that terminates,
or whose replacement is not Ready, is removed, and ssh waits again. A worker that ended and is not replaced has `ended` as its address; one
that its kubelet rejected is replaced.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mpiop.api.status import timestamp
from mpiop.api.types import MPIJob
from mpiop.clock import format_time
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.rejections import is_rejected
from mpiop.controller.restart.attempt import Beginning
from mpiop.kube.objects import Object, annotations_of, is_terminating

ENDED: Final = "ended"
BY_NAME: Final = "by-name\n"
"""Published if the lines do not fit: the annotations of a pod hold 256 KiB."""
_MOST_BYTES: Final = 200 * 1024
REPEAT_SECONDS: Final = 2.0
"""A busy kubelet misses one patch in forty until its next sync of the Pod, more than a minute later: its volume manager takes Pods from an
older list, or a mount that ends discards the request for the next one. The API does not show this, so we patch again after this delay."""


def annotations_to_publish(
    text: str | None, observed: Observed, beginning: Beginning | None, now: datetime
) -> tuple[Mapping[str, str | None], float | None]:
    """Return the annotations of the launcher pod that should be changed now, and the seconds until the next change is due.

    An annotation that is None is removed. The seconds are None if no change is due before an object changes. `text` is what should be
    published (`addresses_to_publish`).
    """
    pod = observed.launcher_pod
    if pod is None or text is None:
        return {}, None
    repeat_seconds = _seconds_to_repeat(pod, now)
    noted: dict[str, str | None] = {} if beginning is None else {names.ANNOTATION_BEGAN_WITH: str(beginning)}
    if text != observed.published_addresses:
        return {names.ANNOTATION_ADDRESSES: text, names.ANNOTATION_PUBLISHED_AT: format_time(now), **noted}, repeat_seconds
    if noted:
        return noted, repeat_seconds
    return {names.ANNOTATION_PUBLISHED_AT: None} if repeat_seconds == 0 else {}, repeat_seconds


def _seconds_to_repeat(launcher_pod: Object, now: datetime) -> float | None:
    """Return the seconds until the kubelet should be made to read the addresses a second time; None if it need not."""
    noted = annotations_of(launcher_pod).get(names.ANNOTATION_PUBLISHED_AT)
    if noted is None:
        return None
    published_at = timestamp(noted)
    passed = REPEAT_SECONDS if published_at is None else (now - published_at).total_seconds()
    return min(REPEAT_SECONDS, max(0.0, REPEAT_SECONDS - passed))


def addresses_to_publish(job: MPIJob, observed: Observed) -> str | None:
    """Return the text that should be published now; None if there is no launcher pod to publish it to, or nothing to publish yet."""
    pod, published = observed.launcher_pod, observed.published_addresses
    if pod is None or published is None or job.is_suspended or job.status.is_finished:
        return None
    if pods.is_finished(pod) or not pods.node(pod):
        return None
    before = dict(line.split(" ", 1) for line in published.splitlines() if " " in line)
    lines = [_line(index, observed.workers.get(name), observed, before) for index, name in enumerate(job.worker_names)]
    if not published and not all(lines):
        return None
    text = f"workers {len(lines)}\n{''.join(lines)}" if any(lines) else ""
    return text if len(text) <= _MOST_BYTES else BY_NAME


def _line(index: int, worker: Object | None, observed: Observed, before: dict[str, str]) -> str:
    """Return the line of a worker, "" if it cannot be reached. A worker published before may be unready for a while."""
    if worker is None or is_terminating(worker):
        return ""
    if pods.is_finished(worker):
        return "" if is_rejected(worker) else f"{index} {ENDED}\n"
    address = pods.address(worker)
    is_known = worker["metadata"].get("name", "") in observed.ready_workers or before.get(str(index)) == address
    return f"{index} {address}\n" if address and is_known else ""
