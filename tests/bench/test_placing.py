"""The benchmark of placements runs; how fast they are is its own business and no test's."""

import json

from click.testing import CliRunner

from tests.bench.placing import BARS, main


def test_it_measures_all_kinds_of_placements() -> None:
    ran = CliRunner().invoke(main, ["--nodes", "1000", "--calls", "3", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    names = {row["name"] for row in found["figures"]}
    assert names >= {name for name, nodes in BARS if nodes == 10_000}
    assert all(row["p50_s"] <= row["p99_s"] for row in found["figures"])
