"""Draws spans of time as SVG or HTML (for `timeline`): as wide as there is room, and light or dark as the reader prefers."""

import html
from collections.abc import Iterator, Sequence
from typing import Final

from mpiop.api.durations import format_duration
from mpiop.kubectl.picture import Axis, Span, axis_of, rows_of

_COLOURS: Final = {
    "scheduling": "#e0a030",
    "pulling": "#8e7cc3",
    "creating": "#6fa8dc",
    "running": "#3c9d5d",
    "failed": "#d93025",
}
_LEGEND: Final = (0.0, 0.25, 0.43, 0.63, 0.83)
"""Places of the colours' names, as parts of the width: the first is the longest."""
_STYLE: Final = """<style>
.paper { fill: #ffffff; background: #ffffff } .line { stroke: #dadce0 }
.ink { fill: #202124; color: #202124 } .faint { fill: #5f6368; color: #5f6368 }
@media (prefers-color-scheme: dark) {
.paper { fill: #17181a; background: #17181a } .line { stroke: #3c4043 }
.ink { fill: #e8eaed; color: #e8eaed } .faint { fill: #9aa0a6; color: #9aa0a6 }
}
</style>"""
_PAGE_STYLE: Final = """<style>
body { margin: 0; font: 12px sans-serif } h1, p { margin: 10px 2% 0; overflow-wrap: anywhere } h1 { font-size: 15px } svg { width: 100% }
</style>"""
_WIDTH: Final = 960
"""Pixels of a picture that is in no page."""
_HEAD, _LABEL, _BAR, _ROW, _FOOT = 48, 14, 14, 38, 52
"""Heights in pixels: above the axis, of a label, of a bar, of both with the gap, and below the axis."""
_LEFT, _RIGHT = 2.0, 98.0
"""Ends of the axis, in percent of the width."""
_THINNEST: Final = 0.6
"""Percent of the width of a bar, however short its time is."""


def as_svg(title: str, made: Sequence[Span]) -> str:
    """Return the picture as SVG."""
    head = [_text(_LEFT, 20, "ink", title, more=' font-size="15"'), _text(_LEFT, 38, "faint", axis_of(made).title)]
    return _svg(title, made, _HEAD, head)


def as_html(title: str, made: Sequence[Span]) -> str:
    """Return a page with the picture."""
    safe = html.escape(title)
    return "\n".join([
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">',
        f"<title>{safe}</title>",
        f"{_PAGE_STYLE}</head>",
        '<body class="paper">',
        f'<h1 class="ink">{safe}</h1>',
        f'<p class="faint">{axis_of(made).title}</p>',
        _svg(title, made, 8, []),
        "</body>",
        "</html>",
    ])


def _svg(title: str, made: Sequence[Span], top: int, head: Sequence[str]) -> str:
    """Return the picture, which begins at `top`, below `head`; names of Pods begin after that of the job, which is in the title."""
    axis, rows, job = axis_of(made), rows_of(made), f"{title.rpartition('/')[2]}-"
    bottom = top + _ROW * len(rows)
    size = f'width="{_WIDTH}" height="{bottom + _FOOT}" font-family="sans-serif" font-size="12"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(title)}" {size}>',
        _STYLE,
        '<rect width="100%" height="100%" class="paper"/>',
        *head,
        *_scale(axis, top, bottom),
        *(part for number, (label, spans) in enumerate(rows) for part in _row(axis, label.removeprefix(job), spans, top + _ROW * number)),
        *_legend(bottom + 30),
        "</svg>",
    ])


def _scale(axis: Axis, top: int, bottom: int) -> Iterator[str]:
    for part, text in axis.ticks():
        x, anchor = _place(part), {0.0: "start", 1.0: "end"}.get(part, "middle")
        yield f'<line x1="{x:.2f}%" y1="{top}" x2="{x:.2f}%" y2="{bottom}" class="line"/>'
        yield _text(x, bottom + 16, "faint", text, more=f' text-anchor="{anchor}"')


def _row(axis: Axis, label: str, spans: Sequence[Span], y: int) -> Iterator[str]:
    """Yield a label and the bars below it, or the label of a node just above the next row."""
    yield _text(_LEFT, y + _LABEL, "ink", label) if spans else _text(_LEFT, y + _ROW - 8, "ink", label, more=' font-weight="bold"')
    for span in spans:
        begun, ended = (_place(axis.part(moment)) for moment in (span.begun, span.ended))
        width = max(ended - begun, _THINNEST)
        shape = f'x="{min(begun, _RIGHT - width):.2f}%" y="{y + _LABEL + 4}" width="{width:.2f}%" height="{_BAR}" rx="2"'
        words = html.escape(f"{span.pod}: {span.phase}, {format_duration(span.ended - span.begun)}")
        yield f'<rect {shape} fill="{_COLOURS[span.phase]}"><title>{words}</title></rect>'


def _legend(y: int) -> Iterator[str]:
    for part, (phase, colour) in zip(_LEGEND, _COLOURS.items(), strict=True):
        x = _place(part)
        yield f'<rect x="{x:.2f}%" y="{y}" width="10" height="10" fill="{colour}"/>'
        yield _text(x, y + 9, "faint", phase, more=' dx="14"')


def _place(part: float) -> float:
    """Return a part of the axis in percent of the width."""
    return _LEFT + part * (_RIGHT - _LEFT)


def _text(x: float, y: int, kind: str, text: str, *, more: str = "") -> str:
    return f'<text x="{x:.2f}%" y="{y}" class="{kind}"{more}>{html.escape(text)}</text>'
