"""The benchmark of the service runs and measures; how fast is its own business and no test's."""

import json

from click.testing import CliRunner

from tests.bench.rpc import gangs, main


def test_it_asks_for_gangs_of_different_names() -> None:
    names = [message.spec.gang for message in gangs(20)]
    assert len(set(names)) == len(names)


def test_it_measures_calls_and_batches() -> None:
    ran = CliRunner().invoke(main, ["--calls", "4", "--batches", "1", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    assert set(found["ratios"]) == {"p50", "p99", "batch"}
    assert all(ratio > 0 for ratio in found["ratios"].values())
