"""The addresses of the workers, for the annotation of the launcher pod that the ssh script reads: a line `<index> <address>` each.

The first addresses are published together, once every worker is Ready; later changes one by one. The line of a worker that terminates,
or whose replacement is not Ready, is removed, and ssh waits again. A worker that ended and is not replaced has `ended` as its address.
"""

from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.kube.objects import Object, is_terminating

ENDED: Final = "ended"
BY_NAME: Final = "by-name\n"
"""Published if the lines do not fit: the annotations of a pod hold 256 KiB."""
_MOST_BYTES: Final = 200 * 1024


def addresses_to_publish(job: MPIJob, observed: Observed) -> str | None:
    """Return the text that should be published now; None if there is no launcher pod to publish it to, or nothing to publish yet."""
    pod, published = observed.launcher_pod, observed.published_addresses
    if pod is None or published is None or job.is_suspended or job.status.is_finished:
        return None
    if pods.is_finished(pod) or not pod.get("spec", {}).get("nodeName"):
        return None
    before = dict(line.split(" ", 1) for line in published.splitlines() if " " in line)
    lines = [_line(index, observed.workers.get(name), observed, before) for index, name in enumerate(names.worker_names(job))]
    if not published and not all(lines):
        return None
    text = "".join(lines)
    return text if len(text) <= _MOST_BYTES else BY_NAME


def _line(index: int, worker: Object | None, observed: Observed, before: dict[str, str]) -> str:
    """Return the line of a worker, "" if it cannot be reached. A worker published before may be unready for a while."""
    if worker is None or is_terminating(worker):
        return ""
    if pods.is_finished(worker):
        return f"{index} {ENDED}\n"
    address = pods.address(worker)
    is_known = worker["metadata"].get("name", "") in observed.ready_workers or before.get(str(index)) == address
    return f"{index} {address}\n" if address and is_known else ""
