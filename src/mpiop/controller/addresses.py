"""What the launcher's pod is told of its workers: one line each, `<index> <address>`, for the script in the place of ssh.

Nothing is told before every worker can be reached; after that, each worker by itself. The line of a worker that is going, or whose
replacement is not Ready, is withdrawn, and ssh waits again. `ended` stands in the place of the address of one that is not made again.
"""

from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller import names, pods
from mpiop.controller.observed import Observed
from mpiop.kube.objects import Object, is_terminating

ENDED: Final = "ended"
BY_NAME: Final = "by-name\n"
"""In the place of lines that do not fit: a pod's annotations hold 256 KiB."""
_MOST_BYTES: Final = 200 * 1024


def addresses_to_tell(job: MPIJob, observed: Observed) -> str | None:
    """Return what the launcher's pod should have been told by now; None when there is nobody to tell, or nothing yet."""
    pod, told = observed.launcher_pod, observed.told_addresses
    if pod is None or told is None or job.is_suspended or job.status.is_finished:
        return None
    if pods.is_finished(pod) or not pod.get("spec", {}).get("nodeName"):
        return None
    before = dict(line.split(" ", 1) for line in told.splitlines() if " " in line)
    lines = [_line(index, observed.workers.get(name), observed, before) for index, name in enumerate(names.worker_names(job))]
    if not told and not all(lines):
        return None
    text = "".join(lines)
    return text if len(text) <= _MOST_BYTES else BY_NAME


def _line(index: int, worker: Object | None, observed: Observed, before: dict[str, str]) -> str:
    """Return the line of a worker; "" when it cannot be reached. One that was reached before may be unready for a while."""
    if worker is None or is_terminating(worker):
        return ""
    if pods.is_finished(worker):
        return f"{index} {ENDED}\n"
    address = pods.address(worker)
    is_known = worker["metadata"].get("name", "") in observed.ready_workers or before.get(str(index)) == address
    return f"{index} {address}\n" if address and is_known else ""
