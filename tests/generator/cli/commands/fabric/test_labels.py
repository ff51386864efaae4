"""Labels and HyperNodes as a source, and as a second witness of the cables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import RAILS, Scene, kube_node, partition, run
from topology.model.tree import API_VERSION

KEYS = ",".join(f"topology.toponaut.io/{tier}" for tier in ("core", "spine", "leaf"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = Scene.of(tmp_path_factory.mktemp("scene"), RAILS)
    made.reports()
    exported = run("export", "labels", made.sweep(), "-o", "json").document["items"]
    labels = {row["metadata"]["name"]: row["metadata"]["labels"] for row in exported}
    write_nodes(made.root / "labelled.json", labels)
    first, *_, last = labels
    wrong = {**labels, first: labels[last]}
    write_nodes(made.root / "wrong.json", wrong)
    return made


def write_nodes(file: Path, labels: dict[str, dict[str, str]]) -> None:
    items = []
    for name, found in labels.items():
        node = kube_node(name)
        node["metadata"]["labels"] = found
        items.append(node)
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def test_labels_that_toponaut_wrote_give_the_tree_of_the_cables(scene: Scene) -> None:
    cables = run("tree", scene.sweep(), "-o", "json").document
    for words in (("--node-labels", KEYS), ("--node-labels", "toponaut")):
        ran = run("tree", *words, "--nodes", scene.root / "labelled.json", "-o", "json")
        assert ran.code == ExitCode.OK
        assert partition(ran.document) == partition(cables)


@pytest.mark.parametrize("name", ["kueue", "kai", "koordinator", "grove"])
def test_an_existing_topology_names_the_keys(scene: Scene, tmp_path: Path, name: str) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text(run("export", name, scene.sweep()).out)
    nodes = scene.root / "labelled.json"
    by_keys = run("tree", "--node-labels", KEYS, "--nodes", nodes, "-o", "json").document
    ran = run("tree", "--topology", file, "--nodes", nodes, "-o", "json")
    assert partition(ran.document) == partition(by_keys)


def test_every_command_reads_labels(scene: Scene, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    spec = {"groups": [{"name": "w", "count": 2}]}
    request.write_text(
        json.dumps({"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec})
    )
    source = ("--node-labels", KEYS, "--nodes", scene.root / "labelled.json")
    assert run("place", "-f", request, *source, "-o", "nodelist").out.startswith("node-")
    assert run("compare", "-f", request, *source).code == ExitCode.OK
    assert run("findings", *source).out == "no findings\n"
    assert "SwitchName=" in run("export", "slurm-tree", *source).out
    applied = run("apply", *source, "--store", tmp_path / "store")
    assert applied.code == ExitCode.OK
    assert (
        run("apply", *source, "--store", tmp_path / "store")
        .out.strip()
        .endswith("nothing to change")
    )


@pytest.mark.parametrize(
    "words",
    [
        ("tree", "--node-labels", KEYS),
        ("tree", "--node-labels", KEYS, "{sweep}", "--nodes", "{nodes}"),
        ("tree", "--node-labels", KEYS, "--topology", "{nodes}", "--nodes", "{nodes}"),
        ("tree", "--node-labels", KEYS, "--nodes", "{nodes}", "--plane", "storage"),
        ("tree", "--node-labels", KEYS, "--nodes", "{nodes}", "--tier-names", "leaf"),
        ("planes", "--node-labels", KEYS, "--nodes", "{nodes}"),
        ("diff", "{sweep}"),
        ("diff", "{sweep}", "--against", "labels", "--nodes", "{nodes}"),
        ("diff", "{sweep}", "--against", "hypernodes"),
        ("diff", "{sweep}", "--against", "hypernodes", "--node-labels", KEYS, "--nodes", "{nodes}"),
        ("diff", "--against", "labels", "--node-labels", KEYS, "--nodes", "{nodes}"),
    ],
)
def test_it_refuses_wrong_usage(scene: Scene, words: tuple[str, ...]) -> None:
    paths = {"sweep": str(scene.sweep()), "nodes": str(scene.root / "labelled.json")}
    assert run(*(word.format(**paths) for word in words)).code == ExitCode.USAGE


def test_diff_names_the_node_that_is_labelled_into_another_domain(scene: Scene) -> None:
    words = ("diff", scene.sweep(), "--against", "labels", "--node-labels", KEYS, "--check")
    assert run(*words, "--nodes", scene.root / "labelled.json").code == ExitCode.OK
    ran = run(*words, "--nodes", scene.root / "wrong.json", "-o", "json")
    assert ran.code == ExitCode.CHECK_FAILED
    first = json.loads((scene.root / "labelled.json").read_text())["items"][0]["metadata"]["name"]
    assert [(row["kind"], row["node"]) for row in ran.document["rows"]] == [("other-domain", first)]
    assert run(*words, "--nodes", scene.root / "wrong.json").out.startswith("KIND ")


def test_diff_compares_with_hypernodes_by_patterns(scene: Scene, tmp_path: Path) -> None:
    folder = tmp_path / "hypernodes"
    folder.mkdir()
    exported = list(yaml.safe_load_all(run("export", "hypernodes", scene.sweep()).out))
    words = ("diff", scene.sweep(), "--against", "hypernodes", "--hypernodes", folder)
    nodes = ("--nodes", scene.root / "labelled.json")
    leaf = next(row for row in exported if row["spec"]["tier"] == 1)
    members = leaf["spec"]["members"]
    names = [row["selector"]["exactMatch"]["name"] for row in members]
    pattern = {"regexMatch": {"pattern": f"^({'|'.join(names)})$"}}
    leaf["spec"]["members"] = [{"type": "Node", "selector": pattern}]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(exported))
    ran = run(*words, *nodes, "--check", "-o", "json")
    assert (ran.code, ran.document["rows"]) == (ExitCode.OK, [])
    leaf["spec"]["members"] = members[1:]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(exported))
    ran = run(*words, *nodes, "--check", "-o", "json")
    assert [(row["kind"], row["node"]) for row in ran.document["rows"]] == [
        ("not-in-witness", names[0])
    ]
