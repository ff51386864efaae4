"""Bars and lines as SVG: plain shapes, sizes in the viewBox, text escaped. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 640
HEIGHT: Final = 280
_LEFT: Final = 64
_RIGHT: Final = 12
_TOP: Final = 14
_BOTTOM: Final = 40
_TICKS: Final = 4
_COLORS: Final = (
    *("#3366cc", "#dc7633", "#2e8b57", "#8e44ad", "#b8860b"),
    *("#17a2b8", "#c0392b", "#7f8c8d", "#14325c", "#9acd32", "#e75480", "#5d4037"),
    "#00695c",
)
"""One color per strategy."""
_GAP: Final = 0.2
"""Share of the width of a group of bars that is empty."""


class Series(NamedTuple):
    """One color of a chart."""

    name: str
    values: Sequence[float]
    """One value per label of bars, or per x of lines."""


def pick_color(series_index: int) -> str:
    """Return the color of series `series_index`, the same in all charts."""
    return _COLORS[series_index % len(_COLORS)]


def render_bars(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Return grouped bars: one group per label, one bar per series."""
    top = _round_up(max((value for item in series for value in item.values), default=0.0))
    group = (WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    width = group * (1 - _GAP) / max(len(series), 1)
    shapes = list(_render_axis(top))
    for index, label in enumerate(labels):
        left = _LEFT + index * group
        shapes.append(_render_text(left + group / 2, HEIGHT - _BOTTOM + 18, label, "middle"))
        for number, item in enumerate(series):
            x = left + group * _GAP / 2 + number * width
            y = _scale_y(item.values[index], top)
            caption = f"{item.name}, {label}: {_render_number(item.values[index])}"
            shapes.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width - 1, 1):.1f}" '
                f'height="{HEIGHT - _BOTTOM - y:.1f}" fill="{pick_color(number)}">'
                f"<title>{escape(caption)}</title></rect>"
            )
    return _render_svg(title, shapes)


def render_lines(title: str, xs: Sequence[float], series: Sequence[Series], x_label: str) -> str:
    """Return one line per series over common x values, which are ascending."""
    top = _round_up(max((value for item in series for value in item.values), default=0.0))
    span = (xs[-1] if xs else 0.0) or 1.0
    shapes = list(_render_axis(top))
    for number, item in enumerate(series):
        points = " ".join(
            f"{_LEFT + x / span * (WIDTH - _LEFT - _RIGHT):.1f},{_scale_y(value, top):.1f}"
            for x, value in zip(xs, item.values, strict=True)
        )
        shapes.append(
            f'<polyline points="{points}" fill="none" stroke="{pick_color(number)}" '
            f'stroke-width="1.5"><title>{escape(item.name)}</title></polyline>'
        )
    shapes.append(_render_text(_LEFT, HEIGHT - _BOTTOM + 18, "0", "middle"))
    shapes.append(
        _render_text(WIDTH - _RIGHT, HEIGHT - _BOTTOM + 18, f"{span:.0f} {x_label}", "end")
    )
    return _render_svg(title, shapes)


def render_legend(names: Sequence[str]) -> str:
    """Return the names of series with their colors, as HTML."""
    return "".join(
        f'<span class="key"><i style="background:{pick_color(index)}"></i>{escape(name)}</span>'
        for index, name in enumerate(names)
    )


def _render_axis(top: float) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        value = top * tick / _TICKS
        y = _scale_y(value, top)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _render_text(_LEFT - 6, y + 4, _render_number(value), "end")


def _scale_y(value: float, top: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (value / top if top else 0.0))


def _round_up(value: float) -> float:
    """Return a round number at or above a value: 1, 2, 4 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= value * (1 - 1e-9))


def _render_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"  # noqa: PLR2004 - digits shown


def _render_text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _render_svg(title: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(shapes)}</svg>"
    )
