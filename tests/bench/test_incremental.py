"""The benchmark of one changed report runs, and times only what gives the true result."""

import json

from click.testing import CliRunner

from tests.bench import incremental
from tests.bench.incremental import CHANGES, measure, render_text


def test_it_measures_every_kind_of_change() -> None:
    figures = measure(128, 3)
    assert {figure.change for figure in figures} == set(CHANGES)
    assert sum(figure.num_changes for figure in figures) == 3 * len(CHANGES)
    assert all(figure.seconds > 0 for figure in figures)
    assert render_text(figures).count("\n") > len(figures) - 1


def test_it_prints_ratios_to_all_reports() -> None:
    ran = CliRunner().invoke(incremental.main, ["--sizes", "64", "--changes", "1", "-o", "json"])
    rows = json.loads(ran.stdout)
    assert rows
    assert all(row["ratio"] > 0 for row in rows)
