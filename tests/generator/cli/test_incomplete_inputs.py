"""Input that is known to be incomplete takes no node out of its HyperNode, and is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import RAILS, Scene, run


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene.of(tmp_path, RAILS)
    store, nodes = scene.store(), scene.nodes()
    assert run("apply", "--store", store, "--nodes", nodes).code == ExitCode.OK
    return scene


Edit = Callable[[dict[str, Any]], object]
BAD_FIELDS: dict[str, Edit] = {
    "a bad id": lambda row: row["ids"].append({"type": "node-guid", "value": "zz"}),
    "an unknown key": lambda row: row.update(rack=7),
    "a bad quantity": lambda row: row.update(capacity={"slots": "many"}),
    "a bad taint": lambda row: row.update(taints=[7]),
    "ids that are no list": lambda row: row.update(ids="x"),
}


def edit_list(scene: Scene, *edits: Edit) -> Path:
    """Change the fourth node of the list, and those that follow it."""
    listed = yaml.safe_load(scene.nodes().read_text())
    for number, edit in enumerate(edits, 3):
        edit(listed["nodes"][number])
    return scene.write("nodes.yaml", yaml.safe_dump(listed))


def test_a_bad_field_moves_no_node_and_is_a_finding(scene: Scene) -> None:
    nodes = edit_list(scene, *BAD_FIELDS.values())
    planned = run("plan", "--store", scene.root / "store", "--nodes", nodes, "-o", "json")
    assert (planned.code, planned.document) == (ExitCode.SKIPPED, [])
    words = ("--reports", scene.root / "store" / "neighborreports", "--nodes", nodes)
    found = run("findings", *words, "--kind", "unusable-field", "-o", "json")
    assert [row["subject"]["device"] for row in found.document] == scene.hosts[3:8]


def test_an_entry_without_a_name_moves_no_node_and_holds_the_plan(scene: Scene) -> None:
    nodes = edit_list(scene, lambda row: row.update(nmae=row.pop("name")))
    planned = run("plan", "--store", scene.root / "store", "--nodes", nodes, "-o", "json")
    assert (planned.code, planned.document) == (ExitCode.SKIPPED, [])
    assert f"and lacks {scene.hosts[3]}; " in planned.err
    applied = run("apply", "--store", scene.root / "store", "--nodes", nodes)
    assert (applied.code, applied.out) == (ExitCode.SKIPPED, "nothing to change\n")


def test_an_entry_without_a_name_holds_nothing_if_every_placed_node_is_listed(
    scene: Scene,
) -> None:
    listed = yaml.safe_load(scene.nodes().read_text())
    listed["nodes"].append({"nmae": "new"})
    nodes = scene.write("nodes.yaml", yaml.safe_dump(listed))
    (scene.root / "store" / "hypernodes").rename(scene.root / "gone")
    planned = run("plan", "--store", scene.root / "store", "--nodes", nodes, "-o", "json")
    assert planned.code == ExitCode.SKIPPED
    assert planned.document


def cut_sweep(scene: Scene) -> Path:
    lines = scene.sweep_text().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if not line.strip()]
    return scene.write("cut.txt", "".join(lines[: ends[len(ends) // 2]]))


@pytest.mark.parametrize("has_hypernodes", [True, False], ids=["written before", "nothing yet"])
def test_nothing_is_planned_from_a_cut_sweep(scene: Scene, *, has_hypernodes: bool) -> None:
    store = scene.root / ("store" if has_hypernodes else "new")
    words = ("--store", store, "--ibnetdiscover", cut_sweep(scene), "--nodes", scene.nodes())
    for command in ("plan", "apply"):
        ran = run(command, *words, "-o", "json")
        assert (ran.code, ran.document) == (ExitCode.SKIPPED, [])
        assert "the sweep is cut" in ran.err


def test_no_cable_is_blamed_for_a_cut_sweep(scene: Scene) -> None:
    file = cut_sweep(scene)
    ran = run("findings", "--ibnetdiscover", file, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert {row["kind"] for row in ran.document} == {"cut-input"}
    plan = "device_a,port_a,device_b,port_b\nnode-0001,mlx5_0/1,leaf-p01-g01-r1,1\n"
    compared = run("diff", "--ibnetdiscover", file, "--cabling", scene.write("plan.csv", plan))
    assert (compared.code, compared.out) == (ExitCode.SKIPPED, "")
    assert "not compared with the plan" in compared.err
    for command in ("tree", "inspect"):
        ran = run(command, file)
        assert ran.code == ExitCode.SKIPPED
        assert "the sweep is cut" in ran.err


def test_a_plan_of_unknown_devices_prints_the_first_rows_and_the_total(scene: Scene) -> None:
    rows = "".join(f"x{number},eth0,y,{number}\n" for number in range(1000))
    plan = scene.write("plan.csv", f"device_a,port_a,device_b,port_b\n{rows}")
    words = ("diff", "--reports", scene.root / "store" / "neighborreports", "--cabling", plan)
    short, whole = run(*words).out, run(*words, "--all").out
    assert "and 900 more; --all prints them" in short
    assert short.count("unknown-device") == 100
    assert whole.count("unknown-device") == 1000
    assert len(run(*words, "--all", "-o", "json").document["rows"]) == 1000
    capped = run(*words, "-o", "json").document
    assert (len(capped["rows"]), capped["leftOut"]["rows"]) == (100, 900)
