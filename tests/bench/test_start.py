"""The benchmark starts real commands; how long they take is its own business and no test's."""

import json

import pytest
from click.testing import CliRunner

from tests.bench.start import MAX_CPU_S, StartTime, main


def test_it_measures_help_and_first_answers() -> None:
    ran = CliRunner().invoke(main, ["--command", "tree", "--runs", "1", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    rows = json.loads(ran.stdout)
    assert [row["is_help"] for row in rows] == [True, *[False] * 11]
    assert all(row["cpu_s"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("cpu_s", "is_help", "is_within"),
    [(MAX_CPU_S, True, True), (2 * MAX_CPU_S, True, False), (2 * MAX_CPU_S, False, True)],
)
def test_it_says_whether_help_is_quick(cpu_s: float, *, is_help: bool, is_within: bool) -> None:
    assert StartTime("tree", cpu_s, is_help).is_within is is_within
