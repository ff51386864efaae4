"""The comparison of replays as one self-contained HTML page: a table and charts, no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from generator.simulation.replay.charts import Series, render_bars, render_legend, render_lines
from generator.simulation.replay.statistics import ReplayStatistics
from topology.model.errors import show

_STYLE: Final = """
:root { color-scheme: light dark; --fg: #222; --bg: #fff; --grid: #ddd; }
@media (prefers-color-scheme: dark) { :root { --fg: #ddd; --bg: #181818; --grid: #444; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  max-width: 1360px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .25rem .8rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } tr + tr { border-top: 1px solid var(--grid); }
.scroll { overflow-x: auto; } .charts { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)); }
figure { margin: 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--fg); } .grid { stroke: var(--grid); }
.key { margin-right: 1.2rem; white-space: nowrap; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
"""
HEADER: Final = (
    *("PRESET", "GANGS", "LOWEST TIER", "LEAVES", "LEAVES/MIN", "LARGEST GANG"),
    *("USED", "MEAN WAIT", "P95 WAIT"),
)


def render_table_row(statistics: ReplayStatistics) -> tuple[str, ...]:
    """Return the cells of one strategy, in the order of `HEADER`."""
    return (
        statistics.name,
        f"{statistics.gangs}",
        f"{statistics.at_lowest_tier:.1%}",
        f"{statistics.leaves}",
        f"{statistics.over_least:.3f}",
        " ".join(f"{value:.1f} {show(tier)}" for tier, value in statistics.largest.items()),
        f"{statistics.utilisation:.1%}",
        render_duration(statistics.wait_s["mean"]),
        render_duration(statistics.wait_s["p95"]),
    )


def render_duration(seconds: float) -> str:
    """Return a duration with a suitable unit, such as `1.5 h`."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def render_page(statistics: Sequence[ReplayStatistics], title: str) -> str:
    """Return the page; all names in it are escaped."""
    shown = escape(show(title, 300))
    charts = "".join(
        f"<figure><figcaption>{escape(caption)}</figcaption>{chart}</figure>"
        for caption, chart in _render_charts(statistics)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{shown}</title><style>{_STYLE}</style><h1>{shown}</h1>"
        f'<div class="scroll">{_render_table(statistics)}</div>'
        f"<p>{render_legend([strategy.name for strategy in statistics])}</p>"
        f'<div class="charts">{charts}</div></html>\n'
    )


def _render_table(statistics: Sequence[ReplayStatistics]) -> str:
    head = "".join(f"<th>{escape(cell.lower())}" for cell in HEADER)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}" for cell in render_table_row(strategy))
        for strategy in statistics
    )
    return f"<table><tr>{head}{rows}</table>"


def _render_charts(statistics: Sequence[ReplayStatistics]) -> Iterator[tuple[str, str]]:
    """Yield (caption, SVG); every chart has one series per strategy."""
    bar_charts = (
        ("Gangs by the tier of the lowest domain around them", "tiers"),
        ("Free whole nodes in the freest domain, share of all free nodes", "fragmentation"),
        ("Largest gang that fits, in whole nodes, mean over time", "largest"),
        ("Mean wait by size in nodes, seconds", "wait_by_nodes"),
    )
    leaves = [
        Series(strategy.name, (strategy.leaves, strategy.leaves_least)) for strategy in statistics
    ]
    caption = "Leaf groups used by gangs, and the fewest possible"
    yield caption, render_bars(caption, ("touched", "least"), leaves)
    for caption, name in bar_charts:
        per_label = [getattr(strategy, name) for strategy in statistics]
        labels = list(dict.fromkeys(label for strategy in per_label for label in strategy))
        series = [
            Series(strategy.name, [values.get(label, 0.0) for label in labels])
            for strategy, values in zip(statistics, per_label, strict=True)
        ]
        yield caption, render_bars(caption, [show(label, 24) for label in labels], series)
    hours = statistics[0].course.hours
    used = [Series(strategy.name, strategy.course.utilisation) for strategy in statistics]
    yield "Share of slots used", render_lines("Share of slots used", hours, used, "h")
    waiting = [Series(strategy.name, strategy.course.waiting) for strategy in statistics]
    yield "Jobs that wait", render_lines("Jobs that wait", hours, waiting, "h")
