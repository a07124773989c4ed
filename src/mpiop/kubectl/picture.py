"""Spans of time on one axis, as text, SVG or HTML."""

import html
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from mpiop.api.durations import format_duration

_COLOURS: Final = {
    "scheduling": "#e0a030",
    "pulling": "#8e7cc3",
    "creating": "#6fa8dc",
    "running": "#3c9d5d",
    "failed": "#cc4444",
}
_SIGNS: Final = {"scheduling": ".", "pulling": "~", "creating": "-", "running": "=", "failed": "x"}
_STYLE: Final = """<style>
.paper { fill: #ffffff } .ink { fill: #202124 } .faint { fill: #5f6368 } .line { stroke: #dadce0 }
@media (prefers-color-scheme: dark) {
.paper { fill: #17181a } .ink { fill: #e8eaed } .faint { fill: #9aa0a6 } .line { stroke: #3c4043 }
}
</style>"""
_TEXT_COLUMNS: Final = 60
_WIDTH, _ROW, _TOP, _MARGIN = 700, 26, 40, 40
_CHARACTER: Final = 7.5
"""Width of a character of a label, at most."""
_TICKS: Final = 4
_SHORT_SECONDS: Final = 60
"""Below it, ticks have tenths of seconds."""


class Span(NamedTuple):
    """What a Pod did from one moment to another; where spans overlap, the later one is seen."""

    pod: str
    phase: str
    begun: datetime
    ended: datetime
    node: str = ""


class _Axis(NamedTuple):
    """The time that all spans take together, at least a second."""

    first: datetime
    seconds: float

    def part(self, moment: datetime) -> float:
        """Return where a moment is, from 0 to 1."""
        return (moment - self.first).total_seconds() / self.seconds

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places on the axis, both ends among them, with their time since its start."""
        for tick in range(_TICKS + 1):
            seconds = self.seconds * tick / _TICKS
            is_short = self.seconds < _SHORT_SECONDS
            yield tick / _TICKS, f"{round(seconds, 1):g}s" if is_short else format_duration(timedelta(seconds=seconds))


def _axis(made: Sequence[Span]) -> _Axis:
    first = min((span.begun for span in made), default=datetime.now(UTC))
    last = max((span.ended for span in made), default=first)
    return _Axis(first, max(1.0, (last - first).total_seconds()))


def _rows(made: Sequence[Span]) -> Sequence[tuple[str, Sequence[Span]]]:
    """Return the lines of the picture: a Pod with its spans, or a node, which has none, before its Pods."""
    rows: list[tuple[str, Sequence[Span]]] = []
    for node in dict.fromkeys(span.node for span in made):
        here = [span for span in made if span.node == node]
        if node:
            rows.append((f"node {node}", ()))
        rows += [(pod, [span for span in here if span.pod == pod]) for pod in dict.fromkeys(span.pod for span in here)]
    return rows


def as_text(title: str, made: Sequence[Span]) -> str:
    """Return the picture in characters, a line for each Pod."""
    if not made:
        return f"{title} has not started yet\n"
    axis, rows = _axis(made), _rows(made)
    last = axis.first + timedelta(seconds=axis.seconds)
    width = max(len(label) for label, _ in rows)
    lines = [f"{title}  from {axis.first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S} UTC, {format_duration(last - axis.first)}"]
    lines += [f"{label:<{width}} |{_cells(axis, spans)}|" if spans else f"{label}:" for label, spans in rows]
    scale = [" "] * (_TEXT_COLUMNS + 12)
    for part, text in axis.ticks():
        place = round(part * _TEXT_COLUMNS)
        scale[place : place + len(text)] = text
    lines.append(f"{'':<{width}}  {''.join(scale).rstrip()}")
    lines.append(f"{'':<{width}}  " + "   ".join(f"{sign} {phase}" for phase, sign in _SIGNS.items()))
    return "\n".join(lines) + "\n"


def _cells(axis: _Axis, spans: Sequence[Span]) -> str:
    cells = [" "] * (_TEXT_COLUMNS + 1)
    for span in spans:
        begun, ended = (round(axis.part(moment) * _TEXT_COLUMNS) for moment in (span.begun, span.ended))
        for cell in range(begun, max(ended, begun + (span.phase == "failed"))):
            cells[min(cell, _TEXT_COLUMNS)] = _SIGNS[span.phase]
    return "".join(cells)


def as_svg(title: str, made: Sequence[Span]) -> str:
    """Return the picture as SVG, light or dark as the reader prefers."""
    axis, rows = _axis(made), _rows(made)
    left = 20 + _CHARACTER * max((len(label) for label, _ in rows), default=0)
    width, bottom = left + _WIDTH + _MARGIN, _TOP + _ROW * len(rows) + 8
    height = bottom + 42
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="sans-serif" font-size="12">',
        _STYLE,
        f'<rect width="{width:.0f}" height="{height}" class="paper"/>',
        f'<text x="10" y="22" font-size="15" class="ink">{html.escape(title)}, from {axis.first:%Y-%m-%d %H:%M:%S} UTC</text>',
    ]
    for part, text in axis.ticks():
        x = left + part * _WIDTH
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" class="line"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" class="faint">{text}</text>')
    for row, (label, spans) in enumerate(rows):
        y = _TOP + _ROW * row
        weight = "" if spans else ' font-weight="bold"'
        parts.append(f'<text x="10" y="{y + 16}" class="ink"{weight}>{html.escape(label)}</text>')
        parts += [_bar(axis, span, left, y + 4) for span in spans]
    for place, phase in enumerate(_COLOURS):
        x = 10 + place * 110
        parts.append(f'<rect x="{x}" y="{bottom + 24}" width="10" height="10" fill="{_COLOURS[phase]}"/>')
        parts.append(f'<text x="{x + 15}" y="{bottom + 33}" class="faint">{phase}</text>')
    return "\n".join([*parts, "</svg>"])


def _bar(axis: _Axis, span: Span, left: float, y: float) -> str:
    x, width = left + axis.part(span.begun) * _WIDTH, max(2.0, (axis.part(span.ended) - axis.part(span.begun)) * _WIDTH)
    label = f"{span.pod}: {span.phase}, {format_duration(span.ended - span.begun)}"
    shape = f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{_ROW - 8}" rx="2" fill="{_COLOURS[span.phase]}">'
    return f"{shape}<title>{html.escape(label)}</title></rect>"


def as_html(title: str, made: Sequence[Span]) -> str:
    """Return a page with the picture."""
    safe = html.escape(title)
    head = '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    return f"{head}<title>{safe}</title></head>\n<body>\n{as_svg(title, made)}\n</body>\n</html>"
