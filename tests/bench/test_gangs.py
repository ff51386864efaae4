"""The benchmark of gangs runs and admits all; how fast is its own business and no test's."""

import json

from click.testing import CliRunner

from tests.bench.gangs import PRESETS, main


def test_it_admits_every_gang() -> None:
    ran = CliRunner().invoke(main, ["--gangs", "40", "--batch-shape", "2x5x10", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    rates = found["rates"]
    assert [row["preset"] for row in rates[1:]] == [preset.value for preset in PRESETS]
    assert all(row["gangs"] == 40 for row in rates)
    assert {"nodes": 100, "gangs": 40}.items() <= found["batch"].items()
    assert found["batch"]["bytes_more"] >= 0
