"""A picture of the dashboard without Grafana: each panel drawn from what Prometheus answered to its queries."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

COLUMNS = 3
WIDTH, HEIGHT = 380, 215
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 62, 34, 304, 118
LEGEND_TOP, LEGEND_WIDTH = 186, 340
COLOURS = ("#3274d9", "#e0812b", "#37872d", "#c4162a", "#8f3bb8", "#0e9aa7", "#b8860b", "#d6559b", "#667085", "#222222")
_LABEL = re.compile(r"\{\{(\w+)\}\}")

Answer = Mapping[str, Any]
"""A panel of the dashboard, and below `results`, for each of its targets, the rows of a range query."""


@dataclass(frozen=True)
class Line:
    """One line of a panel: its name, and its values by time in seconds; NaN is left out."""

    name: str
    values: Mapping[float, float]


def picture(answers: Sequence[Answer]) -> str:
    """Return an SVG of all panels, side by side as in Grafana's grid."""
    rows = math.ceil(len(answers) / COLUMNS)
    size = f'viewBox="0 0 {COLUMNS * WIDTH} {rows * HEIGHT}" width="{COLUMNS * WIDTH}" height="{rows * HEIGHT}"'
    span = _span([line for answer in answers for line in lines_of(answer)])
    places = [f"{number % COLUMNS * WIDTH} {number // COLUMNS * HEIGHT}" for number in range(len(answers))]
    panels = [f'<g transform="translate({place})">\n{_panel(answer, span)}\n</g>' for place, answer in zip(places, answers, strict=True)]
    style = 'font-family="sans-serif" font-size="11" fill="#333333"'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', background, *panels, "</svg>", ""])


def lines_of(answer: Answer) -> list[Line]:
    """Return the lines of a panel under the names that its legend gives them."""
    found: list[Line] = []
    for target, rows in zip(answer["panel"]["targets"], answer["results"], strict=True):
        for row in rows:
            labels: Mapping[str, str] = row["metric"]
            name = _LABEL.sub(lambda label, labels=labels: labels.get(label[1], ""), target["legendFormat"])  # type: ignore[misc]
            values = {float(time): float(value) for time, value in row["values"]}
            found.append(Line(name, {time: value for time, value in values.items() if not math.isnan(value)}))
    return found


def _span(lines: Iterable[Line]) -> tuple[float, float]:
    """Return the first and the last time of all lines; they differ."""
    times = [time for line in lines for time in line.values] or [0]
    return min(times), max(*times, min(times) + 1)


def _panel(answer: Answer, span: tuple[float, float]) -> str:
    panel, lines = answer["panel"], lines_of(answer)
    defaults = panel["fieldConfig"]["defaults"]
    shown = _stacked(lines) if "stacking" in defaults["custom"] else lines
    top = max((value for line in shown for value in line.values.values()), default=0) or 1
    graphs = [_graph(line, COLOURS[index % len(COLOURS)], span, top) for index, line in enumerate(shown)]
    texts = [
        _text(LEFT, 20, panel["title"], 'font-size="13" font-weight="bold"'),
        _text(LEFT - 6, TOP + 8, _amount(top, defaults["unit"]), 'text-anchor="end"'),
        _text(LEFT - 6, TOP + PLOT_HEIGHT, "0", 'text-anchor="end"'),
        _text(LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT + 13, f"{span[1] - span[0]:.0f} s", 'text-anchor="end"'),
    ]
    frame = f'<rect x="{LEFT}" y="{TOP}" width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}" fill="none" stroke="#cccccc"/>'
    return "\n".join([frame, *reversed(graphs), *texts, *_legend(lines)])


def _stacked(lines: Sequence[Line]) -> list[Line]:
    """Return each line on top of those before it; a missing value counts 0."""
    times = sorted({time for line in lines for time in line.values})
    sums, found = dict.fromkeys(times, 0.0), list[Line]()
    for line in lines:
        sums = {time: sums[time] + line.values.get(time, 0) for time in times}
        found.append(Line(line.name, sums))
    return found


def _graph(line: Line, colour: str, span: tuple[float, float], top: float) -> str:
    start, end = span
    points = " ".join(
        f"{LEFT + (time - start) / (end - start) * PLOT_WIDTH:.1f},{TOP + PLOT_HEIGHT - value / top * PLOT_HEIGHT:.1f}"
        for time, value in sorted(line.values.items())
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _legend(lines: Sequence[Line]) -> list[str]:
    found: list[str] = []
    x, y = float(LEFT), LEGEND_TOP
    for index, line in enumerate(lines):
        width = 16 + 6.2 * len(line.name)
        if x + width > LEFT + LEGEND_WIDTH and x > LEFT:
            x, y = LEFT, y + 14
        found.append(f'<rect x="{x:.0f}" y="{y - 8}" width="8" height="8" fill="{COLOURS[index % len(COLOURS)]}"/>')
        found.append(_text(x + 12, y, line.name))
        x += width + 6
    return found


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    return f"{value:.3g}" + ({"cps": "/s", "reqps": "/s"}.get(unit, ""))
