"""`toponaut place -o`: host lists for MPI, Slurm and scripts, and ranges of nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import RAILS, Ran, Scene, run
from topology.model.tree import API_VERSION, render_tree
from topology.synthetic import derive_truth


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = Scene.of(tmp_path_factory.mktemp("scene"), RAILS)
    made.write("tree.json", json.dumps(render_tree(derive_truth(made.damaged))))
    return made


def place_pods(scene: Scene, folder: Path, count: int, *words: object) -> Ran:
    spec = {"groups": [{"name": "w", "count": count}]}
    file = folder / "request.json"
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
    file.write_text(json.dumps(document))
    return run("place", "-f", file, "--tree", scene.root / "tree.json", *words)


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("hostfile", ["node-0001 slots=1", "node-0002 slots=1"]),
        ("hostfile-mpich", ["node-0001:1", "node-0002:1"]),
        ("nodelist", ["node-[0001-0002]"]),
        ("ranks", ["0 node-0001", "1 node-0002"]),
    ],
)
def test_it_prints_host_lists(scene: Scene, tmp_path: Path, output: str, lines: list[str]) -> None:
    ran = place_pods(scene, tmp_path, 2, "-o", output)
    assert (ran.code, ran.out.splitlines(), ran.err) == (ExitCode.OK, lines, "")


def test_a_host_list_without_a_placement_fails(scene: Scene, tmp_path: Path) -> None:
    ran = place_pods(scene, tmp_path, 5000, "-o", "hostfile")
    assert (ran.code, ran.out) == (ExitCode.CHECK_FAILED, "")
    assert ran.err.startswith("infeasible: ")


def test_wide_lists_every_node(scene: Scene, tmp_path: Path) -> None:
    assert "node-[0001-0003]" in place_pods(scene, tmp_path, 3).out
    assert "node-0001 node-0002 node-0003" in place_pods(scene, tmp_path, 3, "-o", "wide").out
