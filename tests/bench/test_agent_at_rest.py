"""The benchmark runs a real agent; how much it takes is its own business and no test's."""

import json

from click.testing import CliRunner

from tests.bench.agent_at_rest import main


def test_it_measures_a_running_agent() -> None:
    ran = CliRunner().invoke(main, ["--rounds", "1", "--period", "0.2", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["rounds"] >= 1
    assert found["rss_mb"] > 1
    assert found["core_percent"] >= 0
