"""The benchmark of source mixes runs, and checks the trees that it times."""

import os
from pathlib import Path

import pytest

from tests.bench.measurement import WrongResultError
from tests.bench.source_figures import (
    LARGE,
    LISTED,
    MIXES,
    SWEEP,
    Goal,
    MixFigure,
    render,
    render_text,
)
from tests.bench.sources import (
    measure_command,
    measure_inference,
    measure_reference,
    measure_rounds,
    warm_cache,
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
    found = render(figures, rounds)
    assert [row["of_sweep"] for row in found["mixes"]] == [1]
    assert render_text(found).count("\n") > len(figures) + len(rounds)


@pytest.mark.parametrize("mix", MIXES)
def test_it_times_no_mix_that_gives_a_wrong_tree(tmp_path: Path, mix: str) -> None:
    files = write_sources(tmp_path, 64)
    (tmp_path / "truth.json").write_text('[[["node-0001"]]]')
    with pytest.raises(WrongResultError, match="not the true one"):
        measure_inference(files, mix)


def test_it_measures_damaged_fabrics_and_writes_only_the_files_of_the_mixes(
    tmp_path: Path,
) -> None:
    files = write_sources(tmp_path, 64, 0.1, mixes=["sweep + node list"])
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "nodes.json",
        "sweep.txt",
        "truth.json",
    ]
    figure = measure_command(files, "sweep + node list", 1.0)
    assert (figure.num_hcas, figure.lost_links) == (64, 0.1)


def test_a_figure_above_its_goal_is_shown() -> None:
    slow = MixFigure(LARGE, 0.1, LISTED, 9.0, 1.0, 800 << 20, 1.0)
    found = render([slow._replace(mix=SWEEP, command_s=2.0), slow], [])
    missed = {goal["name"]: goal["found"] for goal in found["goals"] if not Goal(**goal).is_met}
    title = f"{LISTED}, 10% lost, {LARGE} HCAs"
    assert missed == {
        f"{title}: command, of the sweep alone": 4.5,
        f"{title}: command, of the reference": 9.0,
        f"{title}: peak MiB": 800,
        f"sweep, 10% lost, {LARGE} HCAs: peak MiB": 800,
    }
    assert "1 of 5 goals are met" in render_text(found)


def test_commands_find_their_compiled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    with warm_cache([SWEEP]):
        cache = Path(os.environ["PYTHONPYCACHEPREFIX"])
        assert any(cache.rglob("fabric_join.*.pyc"))
    assert "PYTHONPYCACHEPREFIX" not in os.environ
    assert not cache.exists()
