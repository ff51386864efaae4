"""`plan` and `apply` on a store: what they change, what they keep, and what they never touch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from generator.outputs.hypernode.lint import lint_hypernodes
from generator.outputs.hypernode.model import HyperNode, parse_manifest
from generator.store.fabric_store import FabricStore
from generator.store.object_folders import read_hypernodes
from tests.generator.scenes import RAILS, Scene, domain_names, run
from topology.model.errors import StoreError
from topology.synthetic import FabricKind, SyntheticSpec

pytestmark = pytest.mark.wheel

SMALL = SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene.of(tmp_path, SMALL)


def hypernode(name: str, *, tier: int = 1, members: object = ()) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": name},
            "spec": {"tier": tier, "members": members},
        }
    )


def node_member(name: str) -> dict[str, object]:
    return {"type": "Node", "selector": {"exactMatch": {"name": name}}}


def child_member(name: str) -> dict[str, object]:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def test_it_plans_all_hypernodes_of_a_new_store_bottom_up(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    ran = run("plan", "--store", scene.store(), "-o", "json")
    assert ran.code == ExitCode.OK
    assert {row["op"] for row in ran.document} == {"create"}
    tiers = [row["tier"] for row in ran.document]
    assert tiers == sorted(tiers)
    assert tiers[-1] > 1
    assert not lint_hypernodes([parse_manifest(row["object"]) for row in ran.document])
    assert not (scene.root / "store" / "hypernodes").exists()


def test_it_plans_nothing_after_apply(scene: Scene) -> None:
    store = scene.store()
    planned = run("plan", "--store", store, "-o", "json")
    applied = run("apply", "--store", store, "-o", "json")
    assert (applied.code, applied.document) == (ExitCode.OK, planned.actions)
    again = run("plan", "--store", store, "-o", "json")
    assert (again.code, again.document) == (ExitCode.OK, [])
    assert run("apply", "--store", store, "-o", "json").document == []


def test_it_writes_the_same_from_a_sweep_as_from_reports(scene: Scene) -> None:
    store = scene.store()
    run("apply", "--store", store)
    ran = run("plan", scene.sweep(), "--store", store, "-o", "json")
    assert (ran.code, ran.document) == (ExitCode.OK, [])


def test_it_compares_with_a_folder_of_hypernodes_instead(scene: Scene) -> None:
    store = scene.store()
    run("apply", "--store", store)
    rows = [yaml.safe_load(file.read_text()) for file in (store / "hypernodes").iterdir()]
    scene.write("observed/all.json", json.dumps({"kind": "HyperNodeList", "items": rows}))
    ran = run("plan", scene.sweep(), "--observed", scene.root / "observed", "-o", "json")
    assert (ran.code, ran.document) == (ExitCode.OK, [])


@pytest.mark.parametrize("both", [True, False])
def test_it_requires_exactly_one_set_of_hypernodes_to_compare_with(
    scene: Scene, *, both: bool
) -> None:
    words = ["--store", scene.store(), "--observed", scene.root] if both else []
    ran = run("plan", scene.sweep(), *words)
    assert ran.code == ExitCode.USAGE
    assert "--observed" in ran.err


def test_it_keeps_the_names_of_the_observed_hypernodes(scene: Scene) -> None:
    store = scene.store()
    run("apply", "--store", store)
    folder = store / "hypernodes"
    names = domain_names(run("tree", "--hypernodes", folder, "-o", "json").document)
    (store / "treerecords" / "default.yaml").unlink()
    for file in list(folder.iterdir()):
        text = file.read_text()
        for name in sorted(names, key=len, reverse=True):
            text = text.replace(f"name: {name}\n", f"name: kept-{name}\n")
        file.unlink()
        (folder / f"kept-{file.name}").write_text(text)
    ran = run("plan", "--store", store, "-o", "json")
    assert (ran.code, ran.document) == (ExitCode.OK, []), ran.err


def test_it_fails_the_check_while_anything_would_change(scene: Scene) -> None:
    store = scene.store()
    assert run("plan", "--store", store, "--check").code == ExitCode.CHECK_FAILED
    run("apply", "--store", store)
    assert run("plan", "--store", store, "--check").code == ExitCode.OK


@pytest.mark.parametrize("command", ["plan", "findings"])
def test_it_names_skipped_input_even_if_the_check_fails(scene: Scene, command: str) -> None:
    store = scene.store()
    (store / "neighborreports" / "broken.yaml").write_text("{")
    (store / "neighborreports" / f"{scene.hosts[0]}.yaml").unlink()
    words = ["--store", store] if command == "plan" else ["--reports", store / "neighborreports"]
    nodes = [] if command == "plan" else ["--nodes", scene.nodes()]
    ran = run(command, *words, *nodes, "--check")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "broken.yaml" in ran.err


def test_it_keeps_foreign_hypernodes_and_names_those_that_they_block(
    scene: Scene,
) -> None:
    store = scene.store()
    first = run("plan", "--store", store, "-o", "json").document[0]["name"]
    foreign = hypernode(first, members=[node_member("elsewhere")])
    other = hypernode("other", members=[node_member("elsewhere")])
    (store / "hypernodes").mkdir()
    (store / "hypernodes" / f"{first}.yaml").write_text(foreign)
    (store / "hypernodes" / "other.yaml").write_text(other)
    ran = run("apply", "--store", store)
    assert ran.code == ExitCode.SKIPPED
    assert f"HyperNode {first} is left out" in ran.err
    assert (store / "hypernodes" / f"{first}.yaml").read_text() == foreign
    assert (store / "hypernodes" / "other.yaml").read_text() == other


def test_it_counts_only_hypernodes_that_it_could_replace_in_the_store(scene: Scene) -> None:
    store = scene.store()
    run("apply", "--store", store)
    folder = store / "hypernodes"
    file = max(folder.iterdir())  # the spine, which is a member of no other HyperNode
    file.rename(folder / "elsewhere.yaml")
    ran = run("plan", "--store", store, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert [(row["op"], row["name"]) for row in ran.document] == [("create", file.stem)]
    assert "elsewhere.yaml" in ran.err


def test_it_plans_around_a_cycle_of_foreign_hypernodes(scene: Scene) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        scene.write(f"observed/{name}.yaml", hypernode(name, members=[child_member(other)]))
    ran = run("plan", scene.sweep(), "--observed", scene.root / "observed", "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    assert {row["op"] for row in ran.document} == {"create"}


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda folder: [file.unlink() for file in folder.iterdir()], id="missing"),
        pytest.param(
            lambda folder: [file.write_bytes(b"\xff\x00{") for file in folder.iterdir()],
            id="all damaged",
        ),
        pytest.param(
            lambda folder: [file.unlink() for file in folder.glob("*.sweep.*")],
            id="without the sweep that has the cables",
        ),
    ],
)
def test_it_deletes_nothing_if_the_reports_are(scene: Scene, spoil: object) -> None:
    store = scene.store()
    run("apply", "--store", store)
    before = read_hypernodes(store / "hypernodes")
    assert callable(spoil)
    spoil(store / "neighborreports")
    ran = run("apply", "--store", store, "-o", "json")
    assert ran.code in (ExitCode.SKIPPED, ExitCode.NOTHING)
    assert ran.out == "" or ran.document == []
    assert ran.err
    assert read_hypernodes(store / "hypernodes") == before


def test_it_plans_nothing_from_hypernodes_that_form_a_cycle(scene: Scene) -> None:
    store = scene.store()
    run("apply", "--store", store)
    for name, other in (("one", "two"), ("two", "one")):
        scene.write(f"cyclic/{name}.yaml", hypernode(name, members=[child_member(other)]))
    ran = run("plan", "--hypernodes", scene.root / "cyclic", "--store", store)
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "cycle: " in ran.err


def test_it_stops_at_the_first_failed_write_and_continues_in_the_next_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = scene.store()
    names = [row["name"] for row in run("plan", "--store", store, "-o", "json").document]
    put = FabricStore.put

    def refuse(folder: FabricStore, written: HyperNode, *taken: HyperNode | None) -> bool:
        if written.name == names[1]:
            raise StoreError("the disk is full")
        return put(folder, written, *taken)

    with monkeypatch.context() as full:
        full.setattr(FabricStore, "put", refuse)
        ran = run("apply", "--store", store, "-o", "json")
    assert ran.code == ExitCode.INTERNAL
    assert [row["name"] for row in ran.document] == names[:1]
    assert f"{len(names) - 1} actions not done" in ran.err
    again = run("apply", "--store", store, "-o", "json")
    assert again.code == ExitCode.OK
    assert [row["name"] for row in again.document] == names[1:]


def test_it_prints_which_node_goes_from_where_to_where(scene: Scene) -> None:
    store = scene.store()
    assert run("apply", "--store", store).code == ExitCode.OK
    written = store / "hypernodes"
    leaves = [
        row
        for row in map(yaml.safe_load, (one.read_text() for one in sorted(written.iterdir())))
        if row["spec"]["tier"] == 1
    ]
    first, second = leaves[:2]
    moved = first["spec"]["members"].pop()
    second["spec"]["members"].append(moved)
    for row in (first, second):
        (written / f"{row['metadata']['name']}.yaml").write_text(yaml.safe_dump(row))
    source, target = second["metadata"]["name"], first["metadata"]["name"]
    node = moved["selector"]["exactMatch"]["name"]
    words = ("plan", "--store", store)
    table = [line.split() for line in run(*words).out.splitlines()]
    assert table[-3:] == [["NODES", "FROM", "TO"], [node, source, target], ["1", "node"]]
    moves = [(row["name"], row["moves"]) for row in run(*words, "-o", "json").document]
    expected = {"from": source, "to": target, "nodes": [node]}
    assert [row for row in moves if row[1]] == [(target, [expected])]
