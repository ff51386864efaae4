"""The benchmark of source mixes runs, and checks the trees that it times."""

from pathlib import Path

import pytest

from tests.bench.measurement import WrongResultError
from tests.bench.source_figures import (
    render,
    render_text,
)
from tests.bench.sources import (
    measure_command,
    measure_inference,
    measure_reference,
    measure_rounds,
    write_sources,
)


def test_it_measures_every_mix_and_every_round_of_a_small_fabric(tmp_path: Path) -> None:
    files = write_sources(tmp_path, 64)
    reference_s = measure_reference(files)
    figures = [measure_command(files, "sweep", reference_s)]
    rounds = measure_rounds(files, "all")
    assert [one.change for one in rounds] == [
        "first",
        "a report",
        "nothing",
        "a cable of the sweep",
    ]
    found = render(figures, rounds)
    assert [row["of_sweep"] for row in found["mixes"]] == [1]
    assert render_text(found).count("\n") > len(figures) + len(rounds)


def test_it_times_no_mix_that_gives_a_wrong_tree(tmp_path: Path) -> None:
    files = write_sources(tmp_path, 64)
    (tmp_path / "truth.json").write_text('[[["node-0001"]]]')
    with pytest.raises(WrongResultError, match="not the true one"):
        measure_inference(files, "all")
