"""`timeline`: draws the life of a job's Pods on one axis of time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import click

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.client.api import Api
from mpiop.client.errors import ForbiddenError
from mpiop.client.job import Job
from mpiop.client.progress import is_worker, pod_order, ranks_of_pod
from mpiop.client.status import JobStatus
from mpiop.kube.resources import EVENTS
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.drawing import as_html, as_svg
from mpiop.kubectl.output import printable
from mpiop.kubectl.picture import Span, as_text
from mpiop.kubectl.session import Session, cluster_options

Object = Mapping[str, Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PULLS: Final = ("Pulling", "Pulled")


@click.command("timeline")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.option("-o", "--output", type=click.Choice(["text", "svg", "html"]), default="text", show_default=True, help="Output format.")
@cluster_options()
def timeline_verb(session: Session, name: str, *, output: str) -> None:
    """Draw when each Pod of a job was scheduled, pulled its image, was created, ran and ended."""
    job = session.mpi().get(name)
    made = spans(job, job.pods(), datetime.now(UTC), pull_events(session.api()))
    draw = {"text": as_text, "svg": as_svg, "html": as_html}[output]
    click.echo(printable(draw(f"{job.namespace}/{job.name}", made)), nl=output != "text")


def pull_events(api: Api) -> Sequence[Object]:
    """Return the Events about images that Pods of the namespace pull; none without the right to list Events."""
    path = EVENTS.path(api.namespace)
    try:
        return [event for reason in _PULLS for event in api.get(f"{path}?fieldSelector=reason={reason}")["items"]]
    except ForbiddenError:
        return []


def spans(job: Job, pods: Sequence[Object], now: datetime, events: Sequence[Object] = ()) -> list[Span]:
    """Return the spans of the job, of its launchers and failed attempts, also of those whose Pods are gone, and of its workers.

    Args:
        job: The job.
        pods: Its Pods.
        now: End of the stages that have not ended.
        events: Those of `pull_events`: when an image is pulled is nowhere else.
    """
    status = job.status
    end = status.ended or now
    made: list[Span] = []
    if (start := _known(status.started)) is not None:
        made.append(Span("job", _phase(status), start, end))
    numbers = {attempt.pod: f"attempt {attempt.number}" for attempt in status.attempts}
    launchers, workers = list[Span](), list[Span]()
    for pod in sorted(pods, key=pod_order):
        ranks = ranks_of_pod(job.raw, pod, job.ranks)
        notes = [numbers.get(pod["metadata"]["name"], ""), f"rank{'s' * ('-' in ranks)} {ranks}" if ranks else ""]
        note = ", ".join(filter(None, notes))
        found = [span._replace(note=note) for span in _spans(pod, end if is_worker(pod) else now, events)]
        (workers if is_worker(pod) else launchers).extend(found)
    shown = {span.pod for span in launchers}
    for attempt in status.attempts:
        if attempt.pod not in shown and (stop := _known(attempt.ended)) is not None:
            launchers.append(Span(attempt.pod, "failed", _known(attempt.started) or stop, stop, attempt.node, numbers[attempt.pod]))
    return [*made, *sorted(launchers, key=lambda span: span.begun), *workers]


def _phase(status: JobStatus) -> str:
    if status.condition(c.CONDITION_FAILED):
        return "failed"
    has_run = status.has_succeeded or status.condition(c.CONDITION_RUNNING)
    return "running" if has_run else "creating"


def _known(moment: datetime | None) -> datetime | None:
    """Return a time; None for the epoch, which a kubelet writes for a container that never started."""
    return None if moment is None or moment <= _EPOCH else moment


def _spans(pod: Object, now: datetime, events: Sequence[Object]) -> Iterator[Span]:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    created = timestamp(pod["metadata"].get("creationTimestamp"))
    if created is None:
        return
    node = pod.get("spec", {}).get("nodeName", "")
    rows = {row["type"]: row for row in status.get("conditions") or ()}
    scheduled = timestamp(rows["PodScheduled"].get("lastTransitionTime")) if rows.get("PodScheduled", {}).get("status") == "True" else None
    yield Span(name, "scheduling", created, scheduled or now, node)
    runs = list(_runs(status, now))
    begun = min((run.begun for run in runs), default=now)
    if scheduled is not None:
        yield Span(name, "creating", scheduled, begun, node)
        yield from _pulls(pod, events, begun)
    for run in runs:
        yield Span(name, "failed" if run.has_failed else "running", run.begun, run.ended, node)


class _Run(NamedTuple):
    begun: datetime
    ended: datetime
    has_failed: bool


def _runs(status: Object, now: datetime) -> Iterator[_Run]:
    """Yield the runs of the Pod's containers; one that never started takes no time."""
    states = [row.get(kind, {}) for row in status.get("containerStatuses") or () for kind in ("lastState", "state")]
    for run in (state[kind] for state in states for kind in ("running", "terminated") if kind in state):
        stop = _known(timestamp(run.get("finishedAt")))
        start = _known(timestamp(run.get("startedAt"))) or stop
        if start is not None:
            yield _Run(start, max(start, stop or now), bool(run.get("exitCode")))


def _pulls(pod: Object, events: Sequence[Object], started: datetime) -> Iterator[Span]:
    """Yield the time from the first attempt to pull an image to the last image that was there."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    times = {
        reason: [event for event in events if (event["involvedObject"].get("uid"), event["reason"]) == (uid, reason)] for reason in _PULLS
    }
    begun = [moment for event in times["Pulling"] if (moment := timestamp(event.get("firstTimestamp")))]
    ended = [moment for event in times["Pulled"] if (moment := timestamp(event.get("lastTimestamp")))]
    if begun:
        yield Span(name, "pulling", min(begun), min(max(ended, default=started), started), pod["spec"].get("nodeName", ""))
