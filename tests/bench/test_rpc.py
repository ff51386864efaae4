"""The benchmark of the service runs and measures; how fast is its own business and no test's."""

import json

from click.testing import CliRunner

from tests.bench.rpc import main


def test_it_measures_calls_and_batches() -> None:
    ran = CliRunner().invoke(main, ["--calls", "4", "--batches", "1", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    assert set(found["ratios"]) == {"p50", "p99", "batch"}
    assert all(ratio > 0 for ratio in found["ratios"].values())
