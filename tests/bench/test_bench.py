"""The benchmark runs; how fast is its own business and no test's."""

import json
from pathlib import Path

import pytest

from tests.bench.dumps import write_dump
from tests.bench.measurement import STEPS, WrongResultError, measure
from tests.bench.output import text_figures


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
