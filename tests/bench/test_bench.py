"""The benchmark runs; how fast is its own business and no test's."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench import __main__ as bench
from tests.bench.dumps import write_dump
from tests.bench.measurement import STEPS, WrongResultError, measure
from tests.bench.output import exponent, text_figures


def test_it_measures_every_step_of_a_small_fabric(tmp_path: Path) -> None:
    found = measure(write_dump(tmp_path, 128), rounds=1)
    assert [step.name for step in found.steps] == list(STEPS)
    assert all(step.seconds > 0 and step.peak_bytes > 0 for step in found.steps)
    assert found.num_nodes == 128 // 8
    assert text_figures([found]).count("\n") > len(STEPS)


def test_it_times_nothing_that_gives_a_wrong_tree(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, 64)
    dump.truth.write_text(json.dumps([[["node-0001"]]]))
    with pytest.raises(WrongResultError, match="not the true one"):
        measure(dump, rounds=1)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_it_finds_how_times_grow(power: float) -> None:
    points = [(size, 3e-6 * size**power) for size in (128.0, 1024.0, 10240.0)]
    assert exponent(points) == pytest.approx(power)
    assert exponent(points[:1]) is None


@pytest.mark.parametrize("sizes", ["", "many", "0", "8,-1"])
def test_it_refuses_sizes_that_are_none(sizes: str) -> None:
    ran = CliRunner().invoke(bench.main, ["--sizes", sizes])
    assert ran.exit_code == 2
    assert "--sizes" in ran.stderr
