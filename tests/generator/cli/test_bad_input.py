"""Bad input is skipped and named with its file and line; good input beside it is still read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import PAIRS, Scene, partition, run
from topology.model.errors import show
from topology.model.tree import render_tree
from topology.synthetic import FabricKind, SyntheticSpec, derive_truth

SMALL = SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4)
HOSTILE = "node\n\x1b[31m'\"../\u202e" + "x" * 10_000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene.of(tmp_path, SMALL)


def is_true_tree(scene: Scene, document: dict[str, object]) -> bool:
    return partition(document) == partition(render_tree(derive_truth(scene.damaged)))


BAD_FILES = {
    "empty": b"",
    "blank": b" \n\n",
    "binary": bytes(range(256)) * 8,
    "not UTF-8": b'apiVersion: "\xff\xfe"\n',
    "cut in the middle": b'{"apiVersion": "toponaut.io/v1alpha1", "kind": "Neighb',
    "something else": b"just some words\n",
    "nested without limit": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_it_reads_reports_beside_a_file_that_is(scene: Scene, raw: bytes) -> None:
    bad = scene.reports() / "a-bad.yaml"
    bad.write_bytes(raw)
    ran = run("tree", "--reports", bad.parent, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)
    assert f"skipped: {bad}" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_it_finds_no_usable_input_in_a_sweep_that_is(scene: Scene, raw: bytes) -> None:
    bad = scene.write("bad.txt", raw)
    alone = run("tree", bad, "-o", "json")
    assert (alone.code, alone.out) == (ExitCode.NOTHING, "")
    assert f"skipped: {bad}" in alone.err
    assert "error: no usable input" in alone.err
    beside = run("tree", bad, scene.sweep(), "-o", "json")
    assert beside.code == ExitCode.SKIPPED
    assert is_true_tree(scene, beside.document)


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_it_reads_captures_beside_one_that_is(tmp_path: Path, raw: bytes) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    bad = scene.captures() / "zz-more.neighbors.json0"
    bad.write_bytes(raw)
    ran = run("tree", "--lldpcli", bad.parent, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)
    assert f"skipped: {bad}" in ran.err


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_it_refuses_a_node_list_that_is(scene: Scene, raw: bytes) -> None:
    bad = scene.write("nodes.yaml", raw)
    ran = run("tree", scene.sweep(), "--nodes", bad)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert re.search(
        rf"{re.escape(str(bad))}: (?:no nodes in this file|expected a list of nodes)", ran.err
    )


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_it_reads_hypernodes_beside_a_file_that_is(scene: Scene, raw: bytes) -> None:
    store = scene.store()
    run("apply", "--store", store)
    bad = store / "hypernodes" / "a-bad.yaml"
    bad.write_bytes(raw)
    ran = run("tree", "--hypernodes", bad.parent, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)
    assert f"skipped: {bad}" in ran.err


@pytest.mark.parametrize("option", ["--reports", "--lldpcli", "--hypernodes"])
def test_it_finds_no_usable_input_in_an_empty_folder(tmp_path: Path, option: str) -> None:
    ran = run("tree", option, tmp_path)
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "no usable input" in ran.err
    assert f"skipped: {tmp_path}: no " in ran.err


@pytest.mark.parametrize("option", ["--reports", "--lldpcli", "--hypernodes"])
def test_it_requires_a_folder_for(scene: Scene, option: str) -> None:
    ran = run("tree", option, scene.sweep())
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert option in ran.err


@pytest.mark.parametrize("option", ["--ibnetdiscover", "--nodes", "--previous"])
def test_it_requires_a_file_for(scene: Scene, option: str) -> None:
    ran = run("tree", scene.sweep(), option, scene.root)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert option in ran.err


@pytest.mark.parametrize("option", ["--reports", "--ibnetdiscover", "--nodes", "--previous"])
def test_it_names_the_option_whose_path_does_not_exist(scene: Scene, option: str) -> None:
    ran = run("tree", scene.sweep(), option, scene.root / "missing")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert option in ran.err


def test_it_skips_entries_that_are_not_regular_files_in_a_folder_of_captures(
    tmp_path: Path,
) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    folder = scene.captures()
    os.mkfifo(folder / "pipe.neighbors.json0")
    (folder / "folder.neighbors.json0").mkdir()
    ran = run("tree", "--lldpcli", folder, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)
    assert ran.err.count("not a regular file") == 2


def respell(report: Path, **changes: object) -> None:
    document = json.loads(report.read_text())
    document.update(changes)
    report.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"apiVersion": "toponaut.io/v2"}, "got NeighborReport of toponaut.io/v2"),
        ({"kind": "Pod"}, "got Pod of toponaut.io/v1alpha1"),
        ({"spec": {"device": {"kind": "host"}}}, "spec.device.name"),
        ({"extra": 1}, "extra"),
        ({"spec": {}}, "exactly one of device and sweep"),
        ({HOSTILE: 1}, "node\\n\\x1b[31m"),
    ],
    ids=[
        "a later version",
        "another kind",
        "a missing field",
        "an unknown field",
        "no facts",
        "a hostile field",
    ],
)
def test_it_names_the_problem_of_a_report_with(
    scene: Scene, changes: dict[str, object], says: str
) -> None:
    report = scene.reports() / f"{scene.hosts[0]}.yaml"
    respell(report, **changes)
    ran = run("tree", "--reports", report.parent, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)  # the sweep still knows the host
    assert f"skipped: {report}:1: " in ran.err
    assert says in ran.err
    assert "\x1b" not in ran.err
    assert len(ran.err) < 3000


def test_it_names_the_reports_of_nodes_that_are_not_listed(scene: Scene) -> None:
    listed = scene.kube_nodes(*scene.hosts[1:], "node-new")
    ran = run("tree", "--reports", scene.reports(), "--nodes", listed, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert f"report {scene.hosts[0]}: no such node in the inventory" in ran.err
    placed = {node for row in ran.document["tiers"][0]["domains"] for node in row["nodes"]}
    assert placed == set(scene.hosts[1:])
    assert [row["node"] for row in ran.document["unplaced"]] == ["node-new"]


def test_it_finds_listed_nodes_without_a_report(scene: Scene) -> None:
    folder = scene.reports()
    (folder / f"{scene.hosts[0]}.yaml").unlink()
    ran = run("findings", "--reports", folder, "--nodes", scene.nodes(), "-o", "json")
    assert ran.code == ExitCode.OK
    assert ("silent-node", scene.hosts[0]) in [
        (row["kind"], row["subject"]["device"]) for row in ran.document
    ]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"name": "Not_A_Name"}, "expected a Kubernetes node name, got 'Not_A_Name'"),
        ({"name": HOSTILE}, "expected a Kubernetes node name, got 'node\\n"),
        ({"name": "n", "capacity": {"slots": "eight"}}, "capacity.slots"),
        ({"name": "n", "capacity": {"slots": -1}}, "capacity.slots"),
        ({"name": "n", "capacity": {"slots": "NaN"}}, "capacity.slots"),
        ({"name": "n", "capacity": {"slots": "1e999"}}, "capacity.slots"),
        ({"name": "n", "capacity": {"slots": "1_000"}}, "capacity.slots"),
        ({"name": "n", "capacity": {"slots": True}}, "capacity.slots"),
        ({"name": "n", "ids": [{"type": "mac", "value": "ff:ff:ff:ff:ff:ff"}]}, "usable mac"),
        ({"name": "n", "ids": [{"type": "serial", "value": "1"}]}, "ids.0.type"),
        ({"name": "n", "slots": 8}, "slots"),
        ({"name": "node-0001"}, "listed already"),
        ({"label": "n"}, "expected `nodes: [{name: ...}]`"),
        ("node-0002", "expected `nodes: [...]`"),
    ],
)
def test_it_names_the_problem_of_one_node_in_a_list(scene: Scene, row: object, says: str) -> None:
    listed = yaml.safe_load(scene.nodes().read_text())
    listed["nodes"].append(row)
    nodes = scene.write("odd.yaml", yaml.safe_dump(listed))
    ran = run("tree", scene.sweep(), "--nodes", nodes, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    place = f"skipped: {nodes}:1: nodes[{len(scene.hosts)}]"
    if isinstance(row, dict) and row.get("name") == "n":
        assert f"{place} (n): " in ran.err
        assert [entry["node"] for entry in ran.document["unplaced"]] == ["n"]
    else:
        assert f"{place} is left out: " in ran.err
        assert is_true_tree(scene, ran.document)
    assert says in ran.err
    assert "\x1b" not in ran.err


def test_it_prints_hostile_names_of_hypernodes_as_harmless_text(scene: Scene) -> None:
    name = "\x1b[31mred\nline"
    for other in ("one", "two"):
        body = {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": other},
            "spec": {
                "tier": 1,
                "tierName": name,
                "members": [
                    {"type": "Node", "selector": {"exactMatch": {"name": member}}}
                    for member in (name, f"{other}{name}")
                ],
            },
        }
        scene.write(f"hypernodes/{other}.yaml", json.dumps(body))
    ran = run("tree", "--hypernodes", scene.root / "hypernodes")
    assert ran.code == ExitCode.SKIPPED
    assert "\x1b" not in ran.out + ran.err
    assert show(name) in ran.out


def test_it_reads_the_good_part_of_cyclic_hypernodes(scene: Scene) -> None:
    store = scene.store()
    run("apply", "--store", store)
    for name, other in (("ring-1", "ring-2"), ("ring-2", "ring-1")):
        body = {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": name},
            "spec": {
                "tier": 5,
                "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": other}}}],
            },
        }
        (store / "hypernodes" / f"{name}.yaml").write_text(json.dumps(body))
    ran = run("tree", "--hypernodes", store / "hypernodes", "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, {"tiers": ran.document["tiers"][:2]})
    assert "cycle: ring-1 > ring-2 > ring-1" in ran.err


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"kind": "Pod"}, "expected a TopologyTree"),
        ([1], "expected kind TopologyTree"),
        ({"tiers": None}, "not a TopologyTree: expected a list, got NoneType"),
        (
            {"tiers": [{"tier": float("inf"), "name": "x", "domains": [{"name": "a"}]}]},
            "not a TopologyTree",
        ),
        ({"tiers": [{"tier": 1, "name": "x", "domains": [{"name": "a\x1b"}]}]}, "parent"),
        (
            {
                "tiers": [
                    {"tier": 1, "name": "x", "domains": [{"name": "\x1b", "parent": None}] * 2}
                ]
            },
            "not a forest: two domains named \\x1b",
        ),
    ],
    ids=[
        "another kind",
        "a list as document",
        "no tiers",
        "an infinite tier",
        "no parent",
        "a name twice",
    ],
)
def test_it_refuses_a_previous_tree_with(scene: Scene, document: object, says: str) -> None:
    head = {"apiVersion": "toponaut.io/v1alpha1", "kind": "TopologyTree", "unplaced": []}
    whole = head | document if isinstance(document, dict) else document
    previous = scene.write("previous.json", json.dumps(whole))
    ran = run("tree", scene.sweep(), "--previous", previous)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"{previous}:" in ran.err
    assert says in ran.err
    assert "\x1b" not in ran.err
