"""The benchmark of gangs runs and admits all; how fast is its own business and no test's."""

import json
from collections import Counter

from click.testing import CliRunner

from generator.placement.presets import Preset
from tests.bench.gangs import MIX, PRESETS, draw_mix, main, request_of


def test_it_draws_the_mix_in_its_proportions() -> None:
    drawn = Counter(kind.name for kind in draw_mix(350))
    assert drawn == {kind.name: 2 * kind.weight for kind in MIX}
    assert draw_mix(20) == draw_mix(20)


def test_it_spreads_balanced_gangs_by_their_own_preset() -> None:
    presets = {kind.name: request_of(kind, Preset.KUEUE).preset for kind in MIX}
    assert presets["large, balanced"] is Preset.KUEUE_BALANCED
    assert presets["small, rack required"] is Preset.KUEUE


def test_it_admits_every_gang() -> None:
    ran = CliRunner().invoke(main, ["--gangs", "40", "--batch-shape", "2x5x10", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    rates = found["rates"]
    assert [row["preset"] for row in rates[1:]] == [preset.value for preset in PRESETS]
    assert all(row["gangs"] == 40 for row in rates)
    assert {"nodes": 100, "gangs": 40}.items() <= found["batch"].items()
    assert found["batch"]["bytes_more"] >= 0


def test_it_prints_a_line_for_each_preset() -> None:
    ran = CliRunner().invoke(main, ["--gangs", "8", "--batch-shape", "2x5x10"])
    assert ran.output.startswith("8 gangs on 640 nodes; target 1000 gangs/s\nreference: best fit")
    assert "8 gangs in one batch on 100 nodes" in ran.output
