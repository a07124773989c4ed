"""Spans of time on one axis, and the picture of them in characters (for `timeline`)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from mpiop.api.durations import format_duration

SIGNS: Final = {"scheduling": ".", "pulling": "~", "creating": "-", "running": "=", "failed": "x"}
_COLUMNS: Final = 60
_TICKS: Final = 4
_SHORT_SECONDS: Final = 60
"""Below it, ticks have tenths of seconds."""


class Span(NamedTuple):
    """What a Pod did from one moment to another; where spans overlap, the later one is seen. `note` has its ranks or its attempt."""

    pod: str
    phase: str
    begun: datetime
    ended: datetime
    node: str = ""
    note: str = ""


class Axis(NamedTuple):
    """The time that all spans take together, at least a second."""

    first: datetime
    seconds: float

    @property
    def title(self) -> str:
        """Return when it begins and ends, and how long it is."""
        length = timedelta(seconds=self.seconds)
        last = self.first + length
        end = f"{last:%H:%M:%S}" if last.date() == self.first.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        return f"from {self.first:%Y-%m-%d %H:%M:%S} to {end} UTC, {format_duration(length)}"

    def part(self, moment: datetime) -> float:
        """Return where a moment is, from 0 to 1."""
        return (moment - self.first).total_seconds() / self.seconds

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places on the axis, both ends among them, with their time since its start."""
        for tick in range(_TICKS + 1):
            seconds = self.seconds * tick / _TICKS
            is_short = self.seconds < _SHORT_SECONDS
            yield tick / _TICKS, f"{round(seconds, 1):g}s" if is_short else format_duration(timedelta(seconds=seconds))


def axis_of(made: Sequence[Span]) -> Axis:
    """Return the axis on which all spans have a place."""
    first = min((span.begun for span in made), default=datetime.now(UTC))
    last = max((span.ended for span in made), default=first)
    return Axis(first, max(1.0, (last - first).total_seconds()))


def rows_of(made: Sequence[Span]) -> Sequence[tuple[str, Sequence[Span]]]:
    """Return the lines of the picture: a Pod with its spans, or a node, which has none, before its Pods."""
    rows: list[tuple[str, Sequence[Span]]] = []
    for node in dict.fromkeys(span.node for span in made):
        here = [span for span in made if span.node == node]
        if node:
            rows.append((f"node {node}", ()))
        for pod, note in dict.fromkeys((span.pod, span.note) for span in here):
            rows.append((f"{pod}, {note}" if note else pod, [span for span in here if span.pod == pod]))
    return rows


def as_text(title: str, made: Sequence[Span]) -> str:
    """Return the picture in characters, a line for each Pod."""
    if not made:
        return f"{title} has not started yet\n"
    axis, rows = axis_of(made), rows_of(made)
    width = max(len(label) for label, _ in rows)
    lines = [f"{title}  {axis.title}"]
    lines += [f"{label:<{width}} |{_cells(axis, spans)}|" if spans else f"{label}:" for label, spans in rows]
    scale = [" "] * (_COLUMNS + 12)
    for part, text in axis.ticks():
        place = round(part * _COLUMNS)
        scale[place : place + len(text)] = text
    lines.append(f"{'':<{width}}  {''.join(scale).rstrip()}")
    lines.append(f"{'':<{width}}  " + "   ".join(f"{sign} {phase}" for phase, sign in SIGNS.items()))
    return "\n".join(lines) + "\n"


def _cells(axis: Axis, spans: Sequence[Span]) -> str:
    cells = [" "] * (_COLUMNS + 1)
    for span in spans:
        begun, ended = (round(axis.part(moment) * _COLUMNS) for moment in (span.begun, span.ended))
        for cell in range(begun, max(ended, begun + (span.phase == "failed"))):
            cells[min(cell, _COLUMNS)] = SIGNS[span.phase]
    return "".join(cells)
