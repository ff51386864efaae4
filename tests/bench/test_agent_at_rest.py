"""The benchmark runs a real agent; how much it takes is its own business and no test's."""

import json

import pytest
from click.testing import CliRunner

from tests.bench.agent_at_rest import MAX_CORE_SHARE, MAX_RSS_BYTES, PERIOD_S, AtRest, main


def test_it_measures_a_running_agent() -> None:
    ran = CliRunner().invoke(main, ["--rounds", "1", "--period", "0.2", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["rounds"] >= 1
    assert found["rss_mb"] > 1
    assert found["core_percent"] >= 0


@pytest.mark.parametrize(
    ("rss_bytes", "share", "is_within"),
    [
        (MAX_RSS_BYTES, MAX_CORE_SHARE, True),
        (MAX_RSS_BYTES + 1, MAX_CORE_SHARE, False),
        (MAX_RSS_BYTES, 1.1 * MAX_CORE_SHARE, False),
    ],
)
def test_it_tells_whether_it_is_within_the_bars(
    rss_bytes: int, share: float, *, is_within: bool
) -> None:
    assert AtRest(10, rss_bytes, share * PERIOD_S).is_within is is_within
