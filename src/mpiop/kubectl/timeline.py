"""`timeline`: the life of a job's Pods on one axis of time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click

from mpiop.api.status import timestamp
from mpiop.client.api import Api
from mpiop.client.errors import ForbiddenError
from mpiop.client.progress import is_worker, pod_order
from mpiop.client.status import status_of
from mpiop.kube.resources import EVENTS
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import printable
from mpiop.kubectl.picture import Span, as_html, as_svg, as_text
from mpiop.kubectl.session import Session, cluster_options

Object = Mapping[str, Any]
_PULLS: Final = ("Pulling", "Pulled")


@click.command("timeline")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.option("-o", "--output", type=click.Choice(["text", "svg", "html"]), default="text", show_default=True, help="Form of the picture.")
@cluster_options()
def timeline_verb(session: Session, name: str, *, output: str) -> None:
    """Draw when each Pod of a job was scheduled, pulled its image, was created, ran and ended."""
    job = session.mpi().get(name)
    made = spans(job.raw, job.pods(), datetime.now(UTC), pull_events(session.api()))
    draw = {"text": as_text, "svg": as_svg, "html": as_html}[output]
    click.echo(printable(draw(f"{job.namespace}/{job.name}", made)), nl=output != "text")


def pull_events(api: Api) -> Sequence[Object]:
    """Return the Events about images that Pods of the namespace pull; none without the right to list Events."""
    path = EVENTS.path(api.namespace)
    try:
        return [event for reason in _PULLS for event in api.get(f"{path}?fieldSelector=reason={reason}")["items"]]
    except ForbiddenError:
        return []


def spans(job: Object, pods: Sequence[Object], now: datetime, events: Sequence[Object] = ()) -> list[Span]:
    """Return the spans of the job, of each Pod, launcher first, and of the failed attempts whose Pods are gone.

    Args:
        job: The MPIJob.
        pods: Its Pods.
        now: The end of what goes on.
        events: Those of `pull_events`: when an image is pulled is nowhere else.
    """
    status = status_of(job)
    end = status.ended or now
    made: list[Span] = []
    if status.started is not None:
        made.append(Span("job", "running", status.started, end))
    for pod in sorted(pods, key=pod_order):
        made += _spans(pod, end if is_worker(pod) else now, events)
    shown = {span.pod for span in made}
    for attempt in status.attempts:
        if attempt.pod not in shown and attempt.started is not None:
            made.append(Span(attempt.pod, "running", attempt.started, attempt.ended))
            made.append(Span(attempt.pod, "failed", attempt.ended, attempt.ended))
    return made


def _spans(pod: Object, now: datetime, events: Sequence[Object]) -> Iterator[Span]:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    created = timestamp(pod["metadata"].get("creationTimestamp"))
    if created is None:
        return
    rows = {row["type"]: row for row in status.get("conditions") or ()}
    scheduled = timestamp(rows["PodScheduled"].get("lastTransitionTime")) if rows.get("PodScheduled", {}).get("status") == "True" else None
    yield Span(name, "scheduling", created, scheduled or now)
    states = [row.get(kind, {}) for row in status.get("containerStatuses") or () for kind in ("lastState", "state")]
    runs = [state[kind] for state in states for kind in ("running", "terminated") if kind in state]
    begun = [moment for run in runs if (moment := timestamp(run.get("startedAt")))]
    if scheduled is not None:
        yield Span(name, "creating", scheduled, min(begun, default=now))
        yield from _pulls(pod, events, min(begun, default=now))
    for run in runs:
        if (start := timestamp(run.get("startedAt"))) is None:
            continue
        stop = timestamp(run.get("finishedAt"))
        yield Span(name, "running", start, stop or now)
        if run.get("exitCode"):
            yield Span(name, "failed", stop or now, stop or now)


def _pulls(pod: Object, events: Sequence[Object], started: datetime) -> Iterator[Span]:
    """Yield the time from the first attempt to pull an image to the last image that was there."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    times = {
        reason: [event for event in events if (event["involvedObject"].get("uid"), event["reason"]) == (uid, reason)] for reason in _PULLS
    }
    begun = [moment for event in times["Pulling"] if (moment := timestamp(event.get("firstTimestamp")))]
    ended = [moment for event in times["Pulled"] if (moment := timestamp(event.get("lastTimestamp")))]
    if begun:
        yield Span(name, "pulling", min(begun), min(max(ended, default=started), started))
