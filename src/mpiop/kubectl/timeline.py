"""`timeline`: the life of a job's Pods on one axis of time, as text, SVG or HTML."""

import html
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import click

from mpiop.client.progress import is_worker
from mpiop.client.status import time_of
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.session import Session, cluster_options

Object = Mapping[str, Any]
PHASES: Final = ("scheduling", "creating", "running", "ended")
_COLOURS: Final = {"scheduling": "#e0a030", "creating": "#6fa8dc", "running": "#3c9d5d", "ended": "#9aa0a6", "failed": "#cc4444"}
_SIGNS: Final = {"scheduling": ".", "creating": "-", "running": "=", "ended": " ", "failed": "x"}
_TEXT_COLUMNS: Final = 60
_WIDTH, _LEFT, _ROW, _TOP = 900, 200, 26, 40


class Span(NamedTuple):
    """What a Pod did from one moment to another."""

    pod: str
    phase: str
    begun: datetime
    ended: datetime


@click.command("timeline")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.option("-o", "--output", type=click.Choice(["text", "svg", "html"]), default="text", show_default=True, help="Form of the picture.")
@cluster_options()
def timeline_verb(session: Session, name: str, *, output: str) -> None:
    """Draw when each Pod of a job was scheduled, created, ran and ended."""
    job = session.mpi().get(name)
    made = spans(job.raw, job.pods(), datetime.now(UTC))
    draw = {"text": as_text, "svg": as_svg, "html": as_html}[output]
    click.echo(draw(f"{job.namespace}/{job.name}", made), nl=output != "text")


def spans(job: Object, pods: Sequence[Object], now: datetime) -> list[Span]:
    """Return the spans of the job, of each Pod, launcher first, and of the failed tries whose Pods are gone."""
    status: Object = job.get("status", {})
    end = time_of(status.get("completionTime")) or now
    made: list[Span] = []
    if (started := time_of(status.get("startTime"))) is not None:
        made.append(Span("job", "running", started, end))
    for pod in sorted(pods, key=lambda pod: (is_worker(pod), len(pod["metadata"]["name"]), pod["metadata"]["name"])):
        made += _spans(pod, end if is_worker(pod) else now)
    shown = {span.pod for span in made}
    for attempt in status.get("attempts") or ():
        begun, ended = time_of(attempt.get("startTime")), time_of(attempt.get("endTime"))
        if attempt["pod"] not in shown and begun and ended:
            made += [Span(attempt["pod"], "running", begun, ended), Span(attempt["pod"], "failed", ended, ended)]
    return made


def _spans(pod: Object, now: datetime) -> Iterator[Span]:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    created = time_of(pod["metadata"].get("creationTimestamp"))
    if created is None:
        return
    rows = {row["type"]: row for row in status.get("conditions") or ()}
    scheduled = time_of(rows["PodScheduled"].get("lastTransitionTime")) if rows.get("PodScheduled", {}).get("status") == "True" else None
    yield Span(name, "scheduling", created, scheduled or now)
    states = [row.get(kind, {}) for row in status.get("containerStatuses") or () for kind in ("lastState", "state")]
    runs = [state[kind] for state in states for kind in ("running", "terminated") if kind in state]
    begun = [moment for run in runs if (moment := time_of(run.get("startedAt")))]
    if scheduled is not None:
        yield Span(name, "creating", scheduled, min(begun, default=now))
    for run in runs:
        if (start := time_of(run.get("startedAt"))) is None:
            continue
        stop = time_of(run.get("finishedAt"))
        yield Span(name, "running", start, stop or now)
        if run.get("exitCode"):
            yield Span(name, "failed", stop or now, stop or now)


def as_text(title: str, made: Sequence[Span]) -> str:
    """Return the picture in characters, a line for each Pod."""
    if not made:
        return f"{title} has not started yet\n"
    first, last = min(span.begun for span in made), max(span.ended for span in made)
    seconds = max(1.0, (last - first).total_seconds())
    width = max(len(span.pod) for span in made)
    lines = [f"{title}  from {first:%H:%M:%S} to {last:%H:%M:%S} UTC, {seconds:.0f} s"]
    for pod in dict.fromkeys(span.pod for span in made):
        cells = [" "] * (_TEXT_COLUMNS + 1)
        for span in (span for span in made if span.pod == pod):
            begun, ended = (round((moment - first).total_seconds() / seconds * _TEXT_COLUMNS) for moment in (span.begun, span.ended))
            for cell in range(begun, max(ended, begun + (span.phase == "failed"))):
                cells[min(cell, _TEXT_COLUMNS)] = _SIGNS[span.phase]
        lines.append(f"{pod:<{width}} |{''.join(cells)}|")
    lines.append(f"{'':<{width}}  . scheduling   - creating   = running   x failed")
    return "\n".join(lines) + "\n"


def as_svg(title: str, made: Sequence[Span]) -> str:
    """Return the picture as SVG."""
    pods = list(dict.fromkeys(span.pod for span in made))
    height = _TOP + _ROW * len(pods) + 50
    first = min((span.begun for span in made), default=datetime.now(UTC))
    seconds = max(1.0, (max((span.ended for span in made), default=first) - first).total_seconds())
    scale = (_WIDTH - _LEFT - 20) / seconds
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="22" font-size="15" fill="#202124">{html.escape(title)}</text>',
    ]
    for row, pod in enumerate(pods):
        parts.append(f'<text x="10" y="{_TOP + _ROW * row + 16}" fill="#202124">{html.escape(pod)}</text>')
    for span in made:
        x, y = _LEFT + (span.begun - first).total_seconds() * scale, _TOP + _ROW * pods.index(span.pod) + 4
        width = max(2.0, (span.ended - span.begun).total_seconds() * scale)
        label = f"{span.pod}: {span.phase}, {(span.ended - span.begun).total_seconds():.0f} s"
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 8}" rx="2" fill="{_COLOURS[span.phase]}">'
            f"<title>{html.escape(label)}</title></rect>"
        )
    axis = _TOP + _ROW * len(pods) + 8
    for tick in range(5):
        x, moment = _LEFT + (_WIDTH - _LEFT - 20) * tick / 4, seconds * tick / 4
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{axis}" stroke="#dadce0"/>')
        parts.append(f'<text x="{x:.1f}" y="{axis + 16}" text-anchor="middle" fill="#5f6368">{moment:.1f} s</text>')
    for place, phase in enumerate(("scheduling", "creating", "running", "failed")):
        x = 10 + place * 110
        parts.append(f'<rect x="{x}" y="{axis + 24}" width="10" height="10" fill="{_COLOURS[phase]}"/>')
        parts.append(f'<text x="{x + 15}" y="{axis + 33}" fill="#5f6368">{phase}</text>')
    return "\n".join([*parts, "</svg>"])


def as_html(title: str, made: Sequence[Span]) -> str:
    """Return a page with the picture."""
    safe = html.escape(title)
    head = f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{safe}</title></head>'
    return f"{head}\n<body>\n{as_svg(title, made)}\n</body>\n</html>"
