"""Devices can send any text as a name. No name reaches a terminal or a path unescaped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.cli.exit_codes import ExitCode
from generator.outputs.owned_object import is_object_name
from tests.effort import examples
from tests.generator.scenes import PAIRS, Scene, domain_names, partition, run
from topology.model.tree import render_tree
from topology.synthetic import FabricKind, SyntheticSpec, derive_truth

SMALL = SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4)
NAMES = [
    "\x1b[31mred\x1b[0m",
    "two\nlines\r",
    "../../etc/passwd",
    "'; rm -rf / #",
    '"quoted"',
    "\u202egnp.exe",
    "\ud800",
    "-",
    ".",
    "nul\x00byte",
    "{{ .Values }} $(id) `id`",
    "x" * 10_000,
    "Ünïcødé",
    "1e3",
    "toponaut-placeholder",
]


def visible(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


def captures_with(root: Path, name: str) -> Scene:
    """Write the captures of a fabric whose first leaf sends this name to its neighbors."""
    scene = Scene.of(root, PAIRS)
    leaf = scene.damaged.wiring.switches[0].name
    quoted = json.dumps(name)
    for file in scene.captures().iterdir():
        file.write_text(file.read_text().replace(json.dumps(leaf), quoted))
    return scene


@pytest.mark.parametrize("name", NAMES[::2], ids=ascii)
def test_it_infers_the_true_tree_with_a_switch_named(tmp_path: Path, name: str) -> None:
    scene = captures_with(tmp_path, name)
    words = ["--lldpcli", tmp_path / "captures", "--nodes", scene.nodes()]
    ran = run("tree", *words, "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    assert partition(ran.document) == partition(render_tree(derive_truth(scene.damaged)))
    assert all(is_object_name(domain) for domain in domain_names(ran.document))
    assert ran.out.isascii()
    for command in ("tree", "findings", "plan"):
        more = ["--store", tmp_path / "new"] if command == "plan" else []
        text = run(command, *words, *more)
        assert visible(text.out + text.err)


def test_it_writes_nothing_outside_the_store(tmp_path: Path) -> None:
    scene = captures_with(tmp_path / "in", "../../../escape")
    store = tmp_path / "out" / "store"
    ran = run("apply", "--lldpcli", scene.captures(), "--store", store)
    assert ran.code == ExitCode.OK, ran.err
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert written
    assert all(store in path.parents for path in written)
    assert not [path for path in written if "escape" in path.name and ".." in path.name]


@given(st.sampled_from(NAMES) | st.text(max_size=30))
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_keeps_the_other_hosts_whatever_one_is_named(tmp_path: Path, name: str) -> None:
    scene = Scene.of(tmp_path, SMALL)
    raw = scene.sweep_text().replace("node-0001 mlx5_0", f"{name} mlx5_0")
    sweep = scene.write("sweep.txt", raw.encode("utf-8", "surrogatepass"))
    ran = run("tree", sweep, "-o", "json")
    assert ran.code in (ExitCode.OK, ExitCode.SKIPPED)
    placed = {node for row in ran.document["tiers"][0]["domains"] for node in row["nodes"]}
    assert set(scene.hosts[1:]) <= placed
    for command in ("tree", "findings", "inspect"):
        text = run(command, sweep)
        assert visible(text.out + text.err)
