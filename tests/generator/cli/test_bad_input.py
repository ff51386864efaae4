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


def add_bad_files(folder: Path, ending: str) -> list[Path]:
    """Write one file with each bad content."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, raw in enumerate(BAD_FILES.values()):
        files.append(folder / f"a-bad-{number}{ending}")
        files[-1].write_bytes(raw)
    return files


@pytest.mark.parametrize("option", ["--reports", "--lldpcli", "--hypernodes"])
def test_it_reads_good_files_of_a_folder_beside_bad_ones(tmp_path: Path, option: str) -> None:
    scene = Scene.of(tmp_path, PAIRS if option == "--lldpcli" else SMALL)
    if option == "--hypernodes":
        run("apply", "--store", scene.store())
        folder = scene.root / "store" / "hypernodes"
    else:
        folder = scene.captures() if option == "--lldpcli" else scene.reports()
    bad = add_bad_files(folder, ".neighbors.json0" if option == "--lldpcli" else ".yaml")
    ran = run("tree", option, folder, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)
    assert [f"skipped: {file}" in ran.err for file in bad] == [True] * len(bad), ran.err
    if option == "--reports":
        assert ran.err.count("\n") == len(bad)


def test_it_finds_no_usable_input_in_bad_sweeps_and_reads_a_good_one_beside_them(
    scene: Scene,
) -> None:
    bad = add_bad_files(scene.root / "bad", ".txt")
    alone = run("tree", *bad, "-o", "json")
    assert (alone.code, alone.out) == (ExitCode.NOTHING, "")
    assert [f"skipped: {file}" in alone.err for file in bad] == [True] * len(bad), alone.err
    assert "error: no usable input" in alone.err
    beside = run("tree", *bad, scene.sweep(), "-o", "json")
    assert beside.code == ExitCode.SKIPPED
    assert is_true_tree(scene, beside.document)


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_it_refuses_a_node_list_that_is(scene: Scene, raw: bytes) -> None:
    bad = scene.write("nodes.yaml", raw)
    ran = run("tree", scene.sweep(), "--nodes", bad)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert re.search(
        rf"{re.escape(str(bad))}: (?:no nodes in this file|expected a list of nodes)", ran.err
    )


@pytest.mark.parametrize("option", ["--reports", "--lldpcli", "--hypernodes"])
def test_it_finds_no_usable_input_in_an_empty_folder(tmp_path: Path, option: str) -> None:
    ran = run("tree", option, tmp_path)
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "no usable input" in ran.err
    assert f"skipped: {tmp_path}: no " in ran.err


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


CHANGES: list[tuple[dict[str, object], str]] = [
    ({"apiVersion": "toponaut.io/v2"}, "got NeighborReport of toponaut.io/v2"),
    ({"kind": "Pod"}, "got Pod of toponaut.io/v1alpha1"),
    ({"spec": {"device": {"kind": "host"}}}, "spec.device.name"),
    ({"extra": 1}, "extra"),
    ({"spec": {}}, "exactly one of device and sweep"),
    ({HOSTILE: 1}, "node\\n\\x1b[31m"),
]


def test_it_names_the_problem_of_each_report(scene: Scene) -> None:
    folder = scene.reports()
    expected = []
    for host, (changes, says) in zip(scene.hosts, CHANGES, strict=False):
        report = folder / f"{host}.yaml"
        report.write_text(json.dumps(json.loads(report.read_text()) | changes))
        expected.append((f"skipped: {report}:1: ", says))
    ran = run("tree", "--reports", folder, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert is_true_tree(scene, ran.document)  # the sweep still knows the hosts
    for line, (place, says) in zip(ran.err.splitlines(), expected, strict=True):
        assert line.startswith(place)
        assert says in line
        assert line.isprintable()
        assert len(line) < 3000


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


BAD_NODES: list[tuple[object, str]] = [
    ({"name": "Not_A_Name"}, "expected a Kubernetes node name, got 'Not_A_Name'"),
    ({"name": HOSTILE}, "expected a Kubernetes node name, got 'node\\n"),
    ({"name": "n2", "capacity": {"slots": "eight"}}, "capacity.slots"),
    ({"name": "n3", "capacity": {"slots": -1}}, "capacity.slots"),
    ({"name": "n4", "capacity": {"slots": "NaN"}}, "capacity.slots"),
    ({"name": "n5", "capacity": {"slots": "1e999"}}, "capacity.slots"),
    ({"name": "n6", "capacity": {"slots": "1_000"}}, "capacity.slots"),
    ({"name": "n7", "capacity": {"slots": True}}, "capacity.slots"),
    ({"name": "n8", "ids": [{"type": "mac", "value": "ff:ff:ff:ff:ff:ff"}]}, "usable mac"),
    ({"name": "n9", "ids": [{"type": "serial", "value": "1"}]}, "ids.0.type"),
    ({"name": "n10", "slots": 8}, "slots"),
    ({"name": "node-0001"}, "listed already"),
    ({"label": "n"}, "expected `nodes: [{name: ...}]`"),
    ("node-0002", "expected `nodes: [...]`"),
]
"""Entries of a list of nodes, each with what the message about it says."""


def test_it_names_the_problem_of_each_node_in_a_list(scene: Scene) -> None:
    listed = yaml.safe_load(scene.nodes().read_text())
    listed["nodes"] += [row for row, _ in BAD_NODES]
    nodes = scene.write("odd.yaml", yaml.safe_dump(listed))
    ran = run("tree", scene.sweep(), "--nodes", nodes, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert {row["node"] for row in ran.document["unplaced"]} == {f"n{at}" for at in range(2, 11)}
    assert is_true_tree(scene, ran.document)
    for number, (_, says) in enumerate(BAD_NODES):
        place = f"skipped: {nodes}:1: nodes[{len(scene.hosts) + number}]"
        place += f" (n{number}): " if 2 <= number <= 10 else " is left out: "
        (line,) = (line for line in ran.err.splitlines() if line.startswith(place))
        assert says in line
        assert line.isprintable()


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


def test_a_folder_around_the_folder_of_reports_is_answered_with_the_one_inside(
    tmp_path: Path,
) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    store = scene.store()
    ran = run("tree", "--reports", store)
    assert ran.code == ExitCode.NOTHING
    assert f"did you mean --reports {store}/neighborreports?" in ran.err
    assert "did you mean" not in run("tree", "--reports", store / "neighborreports").err


def test_a_folder_in_the_place_of_a_file_is_answered_with_the_options_of_folders(
    tmp_path: Path,
) -> None:
    ran = run("tree", tmp_path)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "is a folder: folders have options, such as --reports." in ran.err
