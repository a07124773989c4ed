"""Spans of time on one axis, as text, SVG or HTML."""

import html
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

_COLOURS: Final = {
    "scheduling": "#e0a030",
    "pulling": "#8e7cc3",
    "creating": "#6fa8dc",
    "running": "#3c9d5d",
    "failed": "#cc4444",
}
_SIGNS: Final = {"scheduling": ".", "pulling": "~", "creating": "-", "running": "=", "failed": "x"}
_TEXT_COLUMNS: Final = 60
_WIDTH, _LEFT, _ROW, _TOP = 900, 200, 26, 40


class Span(NamedTuple):
    """What a Pod did from one moment to another; where spans overlap, the later one is seen."""

    pod: str
    phase: str
    begun: datetime
    ended: datetime


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
    lines.append(f"{'':<{width}}  " + "   ".join(f"{sign} {phase}" for phase, sign in _SIGNS.items()))
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
    for place, phase in enumerate(_COLOURS):
        x = 10 + place * 110
        parts.append(f'<rect x="{x}" y="{axis + 24}" width="10" height="10" fill="{_COLOURS[phase]}"/>')
        parts.append(f'<text x="{x + 15}" y="{axis + 33}" fill="#5f6368">{phase}</text>')
    return "\n".join([*parts, "</svg>"])


def as_html(title: str, made: Sequence[Span]) -> str:
    """Return a page with the picture."""
    safe = html.escape(title)
    head = f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{safe}</title></head>'
    return f"{head}\n<body>\n{as_svg(title, made)}\n</body>\n</html>"
