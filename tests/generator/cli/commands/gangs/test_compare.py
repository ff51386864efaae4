"""`toponaut compare`: one row per preset, with the same measures in each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.cli.commands.gangs.compare import _render_cells
from generator.cli.exit_codes import ExitCode
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.preset_comparison import compare_presets
from generator.placement.presets import Preset
from tests.generator.cli.commands.gangs.test_place import write_request
from tests.generator.placement.documents import racks, request, workers
from tests.generator.scenes import RAILS, Scene, run
from topology.model.tree import render_tree
from topology.synthetic import derive_truth

COUNT = 4


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = Scene.of(tmp_path_factory.mktemp("compared"), RAILS)
    made.write("tree.json", json.dumps(render_tree(derive_truth(made.damaged))))
    return made


def test_it_prints_json(scene: Scene, tmp_path: Path) -> None:
    words = ("--tree", scene.root / "tree.json", "-o", "json")
    ran = run("compare", "-f", write_request(tmp_path), *words)
    assert ran.code == ExitCode.OK
    rows = json.loads(ran.out)
    assert [row["preset"] for row in rows] == [preset.value for preset in Preset]
    assert {row["placement"]["feasible"] for row in rows} == {True}
    assert {sum(map(len, row["placement"]["assignment"].values())) for row in rows} == {COUNT}


def test_it_prints_a_table_in_a_pipe(scene: Scene, tmp_path: Path) -> None:
    words = ("--tree", scene.root / "tree.json", "--preset", "kai", "--preset", "optimal")
    ran = run("compare", "-f", write_request(tmp_path), *words)
    head, *rows = ran.out.splitlines()
    assert head.split()[:3] == ["PRESET", "TIER", "PODS"]
    assert [row.split()[0] for row in rows] == ["kai", "optimal"]
    assert [row.split()[2] for row in rows] == ["4", "4"]


def test_it_shows_the_reason_if_a_preset_finds_no_placement(scene: Scene, tmp_path: Path) -> None:
    file = write_request(tmp_path, required="leaf", groups=workers(500))
    ran = run("compare", "-f", file, "--tree", scene.root / "tree.json", "-o", "text")
    assert ran.code == ExitCode.OK
    assert {row.split()[-1] for row in ran.out.splitlines()[1:]} == {"no-fit"}


def test_it_measures_each_preset_in_the_same_way() -> None:
    nodes = {f"n{index}": NodeSpec(f"n{index}", {"slots": 1 + index % 2}) for index in range(8)}
    asked = request(groups=workers(3), required="block")
    rows = compare_presets(build_snapshot(racks(2, 2, 2, 2), nodes), asked, list(Preset))
    best = next(row for row in rows if row.preset is Preset.OPTIMAL)
    assert (best.domains_used, best.slots_left) == (
        {"node": 2, "rack": 1, "block": 1},
        {"node": 0, "rack": 0, "block": 3},
    )
    assert all(row.domains_used["rack"] >= best.domains_used["rack"] for row in rows)


def test_it_names_victims() -> None:
    low = RunningGang("low", tuple(RunningPods(f"n{index}") for index in range(4)))
    snapshot = build_snapshot(racks(2, 2), {}, [low])
    asked = request(groups=workers(2), required="rack", priority=1, preemption="topologyFirst")
    rows = compare_presets(snapshot, asked, [Preset.OPTIMAL, Preset.KUEUE])
    assert {row.placement.victims for row in rows} == {("low@n0", "low@n1")}
    assert {row.slots_left["rack"] for row in rows} == {0}
    assert [_render_cells(row)[5] for row in rows] == ["low@n0, low@n1"] * 2
