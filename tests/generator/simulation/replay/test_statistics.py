"""Statistics of a replay, checked by hand, and the page with them."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from generator.simulation.replay.charts import (
    HEIGHT,
    WIDTH,
    Series,
    pick_color,
    render_bars,
    render_lines,
)
from generator.simulation.replay.page import HEADER, render_duration, render_page, render_table_row
from generator.simulation.replay.run_names import FIRST_FIT, STRATEGY_NAMES
from generator.simulation.replay.statistics import NUM_POINTS, ReplayStatistics, compute_statistics
from tests.generator.simulation.replay.scenes import cluster, jobs, replayed

# Eight nodes in leaves of two: three nodes for 10 s, then, after 5 s, three more for 10 s; the
# last one comes when four nodes are used no more.
ROWS = jobs((0, 3, 10), (5, 3, 10), (20, 2, 1))


@pytest.fixture
def figures() -> ReplayStatistics:
    return compute_statistics(FIRST_FIT, replayed(ROWS), cluster())


def test_it_counts_tiers_and_leaves_of_gangs(figures: ReplayStatistics) -> None:
    assert (figures.started, figures.gangs, figures.refused) == (3, 3, 0)
    assert figures.tiers == {"node": 0, "leaf": 1, "spine": 1, "cluster": 1}
    assert (figures.leaves, figures.leaves_least) == (5, 5)
    assert figures.at_lowest_tier == pytest.approx(2 / 3)


def test_it_weighs_means_by_time(figures: ReplayStatistics) -> None:
    used = (5 * 3 + 5 * 6 + 5 * 3 + 5 * 0) / (20 * 8)
    assert figures.utilisation == pytest.approx(used)
    assert figures.largest["leaf"] == pytest.approx(2.0)
    assert figures.largest["spine"] == pytest.approx((5 * 4 + 5 * 2 + 5 * 3 + 5 * 4) / 20)


def test_it_returns_the_waiting_times() -> None:
    found = compute_statistics(FIRST_FIT, replayed(jobs((0, 8, 10), (4, 1, 5))), cluster())
    assert found.wait_s == {"mean": 3.0, "p50": 6.0, "p95": 6.0, "p99": 6.0}
    assert found.wait_by_nodes == {"1": 6.0, "8-31": 0.0}


def test_it_draws_the_series_from_first_to_last(figures: ReplayStatistics) -> None:
    assert len(figures.course.hours) == NUM_POINTS
    assert figures.course.utilisation[0] == pytest.approx(3 / 8)
    assert figures.course.utilisation[-1] == 0
    assert sum(figures.course.utilisation) / NUM_POINTS == pytest.approx(
        figures.utilisation, abs=1e-3
    )


def test_it_has_statistics_without_jobs() -> None:
    found = compute_statistics(FIRST_FIT, replayed(()), cluster())
    assert (found.started, found.utilisation, found.wait_s["p99"]) == (0, 0.0, 0.0)
    assert render_page([found], "nothing")


def test_it_shows_every_figure_of_the_header(figures: ReplayStatistics) -> None:
    assert len(render_table_row(figures)) == len(HEADER)


def test_it_has_a_color_for_each_strategy() -> None:
    assert len({pick_color(at) for at in range(len(STRATEGY_NAMES))}) == len(STRATEGY_NAMES)


def test_it_escapes_names_in_a_page(figures: ReplayStatistics) -> None:
    evil = replace(figures, tiers={'<script>"&\x1b': 3}, name="<b>x</b>")
    page = render_page([evil], "<title>\u202e & co")
    assert "<script" not in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "http" not in page


@pytest.mark.parametrize(
    "svg",
    [
        pytest.param(
            render_bars("t", ["a", "<&>"], [Series("s", [1, 2e6]), Series('"', [0, 0.001])]),
            id="bars",
        ),
        pytest.param(render_bars("t", [], []), id="no bar"),
        pytest.param(render_lines("t", [1.0, 2.0], [Series("s", [0.0, 5.0])], "h"), id="lines"),
        pytest.param(render_lines("t", [], [], "h"), id="no line"),
    ],
)
def test_it_draws_well_formed_shapes_in_the_picture(svg: str) -> None:
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    for shape in root.iter("rect"):
        left, top = float(shape.attrib["x"]), float(shape.attrib["y"])
        assert left >= 0
        assert left + float(shape.attrib["width"]) <= WIDTH
        assert 0 <= top <= top + float(shape.attrib["height"]) <= HEIGHT
    numbers = re.findall(
        r"[-0-9.]+", " ".join(line.attrib["points"] for line in root.iter("polyline"))
    )
    assert all(0 <= float(number) <= max(WIDTH, HEIGHT) for number in numbers)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (90, "1.5 min"), (7200, "2.0 h"), (1e6, "11.6 d")],
)
def test_it_renders_a_duration(seconds: float, text: str) -> None:
    assert render_duration(seconds) == text
