"""Statistics of a replay, checked by hand."""

from __future__ import annotations

import pytest

from generator.cli.commands.programs.simulate.jobs import render_duration
from generator.simulation.replay.replay import NUM_POINTS, ReplayStatistics, compute_statistics
from generator.simulation.replay.run_names import FIRST_FIT
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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (90, "1.5 min"), (7200, "2.0 h"), (1e6, "11.6 d")],
)
def test_it_renders_a_duration(seconds: float, text: str) -> None:
    assert render_duration(seconds) == text
