"""The benchmark of source mixes runs, and checks the trees that it times."""

from pathlib import Path

import pytest

from tests.bench.measurement import WrongResultError
from tests.bench.sources import (
    MIXES,
    measure_command,
    measure_inference,
    measure_reference,
    measure_rounds,
    render,
    render_text,
    write_sources,
)


def test_it_measures_every_mix_and_every_round_of_a_small_fabric(tmp_path: Path) -> None:
    files = write_sources(tmp_path, 64)
    reference_s = measure_reference(files)
    figures = [measure_command(files, mix, reference_s) for mix in ("sweep",)]
    rounds = measure_rounds(files, "all")
    assert [one.change for one in rounds] == [
        "first",
        "a report",
        "nothing",
        "a cable of the sweep",
    ]
    assert [one.path for one in rounds] == ["whole", "joined", "-", "whole"]
    found = render(figures, rounds)
    assert [row["of_sweep"] for row in found["mixes"]] == [1]
    assert render_text(found).count("\n") > len(figures) + len(rounds)


@pytest.mark.parametrize("mix", MIXES)
def test_it_times_no_mix_that_gives_a_wrong_tree(tmp_path: Path, mix: str) -> None:
    files = write_sources(tmp_path, 64)
    (tmp_path / "truth.json").write_text('[[["node-0001"]]]')
    with pytest.raises(WrongResultError, match="not the true one"):
        measure_inference(files, mix)
