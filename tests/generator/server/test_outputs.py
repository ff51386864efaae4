"""The outputs of a served folder: the documents of each output as files."""

import base64
import json
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from generator.outputs.hypernode.forest import render_hypernodes
from generator.reconcile.folder_outputs import FOLDER
from tests.generator.server.days import SMALL, Day
from topology.model.tree import TopologyTree, parse_tree, render_tree

LABELS = {"type": "labels"}


def files(day: Day) -> dict[str, tuple[int, str]]:
    """Return inode and text of every file of an output."""
    root = day.root / FOLDER
    return {
        str(path.relative_to(root)): (path.stat().st_ino, path.read_text())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def status_of(day: Day) -> dict[str, Any]:
    document = day.store.read_fabric()
    assert document is not None
    return dict(document["status"])


def approve(day: Day, plan: str) -> None:
    day.store.approve(plan)


def values(day: Day) -> dict[str, str]:
    """Return the label of the leaf of each node."""
    _, text = files(day)["labels/labels.yaml"]
    return {
        row["metadata"]["name"]: row["metadata"]["labels"]["topology.toponaut.io/leaf"]
        for row in yaml.safe_load_all(text)
    }


def test_each_output_is_a_file_that_is_written_once(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.want(outputs=[{"type": "hypernode"}, LABELS, {"type": "kueue"}, {"type": "slurm-tree"}])
    day.tick()
    found = files(day)
    assert list(found) == ["kueue/kueue.yaml", "labels/labels.yaml", "slurm-tree/topology.conf"]
    assert values(day).keys() == set(day.scene.hosts)
    assert day.placed() == set(day.scene.hosts)
    states = [(row["type"], row["state"]) for row in status_of(day)["outputs"]]
    chosen = ("hypernode", "labels", "kueue", "slurm-tree")
    assert states == [(kind, "Written") for kind in chosen]
    assert status_of(day)["labelKeys"][0]["key"] == "topology.toponaut.io/leaf"
    day.tick()
    assert files(day) == found, "the same files, not equal ones"
    (day.root / FOLDER / "labels" / "mine.txt").write_text("of a person")
    day.want(outputs=[{"type": "hypernode"}])
    day.tick()
    assert list(files(day)) == ["labels/mine.txt"]
    assert [row["type"] for row in status_of(day)["outputs"]] == ["hypernode"]


def test_the_status_counts_the_hypernodes_and_dates_their_last_write(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)

    def row() -> dict[str, Any]:
        (found,) = status_of(day)["outputs"]
        return dict(found)

    day.tick()
    first = row()
    num = len(day.store.read_hypernodes().values)
    assert first == {
        "type": "hypernode",
        "state": "Written",
        "objects": num,
        "lastWrite": status_of(day)["conditions"][0]["lastTransitionTime"],
    }
    day.tick()
    day.restart()
    day.tick()
    assert row() == first, "rest writes nothing, and a restart keeps the time"
    day.want(paused=True)
    top = max(day.store.read_hypernodes().values, key=lambda row: row.tier)
    day.store.remove(top.name)
    day.tick()
    paused = {"state": "Pending", "objects": num - 1, "pending": 1}
    assert row() == first | paused
    assert day.conditions()["OutputsWritten"] == "-Paused"
    day.want(paused=False)
    day.now += timedelta(minutes=1)
    day.tick()
    assert row()["objects"] == num
    assert row()["lastWrite"] > first["lastWrite"]


def test_outputs_alone_follow_a_decided_tree(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.want(outputs=[LABELS], changeBudget={"nodesPercent": 0})
    day.tick()
    before = values(day)
    assert day.placed() == set()
    assert status_of(day)["conditions"]
    day.lose(day.some(3))
    day.tick()
    assert day.held()
    assert values(day) == before, "a held plan changes no output"
    approve(day, day.held())
    day.tick()
    assert values(day).keys() == before.keys() - set(day.some(3))


def test_names_and_outputs_follow_a_record_of_hypernodes_as_older_versions_wrote_it(
    tmp_path: Path,
) -> None:
    day = Day(tmp_path, SMALL)
    day.want(outputs=[LABELS], changeBudget={"nodesPercent": 0, "domainsPercent": 0})
    day.tick()
    other_leaf = max(values(day).values())
    record = day.store.read_record().record
    assert record is not None
    assert record.tree is not None
    leaf = record.tree.domains[0].name
    rows = [
        (
            row.name.replace(leaf, "old-name"),
            row.tier,
            row.tier_name,
            row.is_padding,
            [name.replace(leaf, "old-name") for name in row.children],
            row.nodes,
        )
        for row in render_hypernodes(record.tree)
    ]
    content = json.dumps({"hypernodes": rows, "moved": {}, "deleted": []}).encode()
    document = json.loads((day.store.records / "default.yaml").read_text())
    document["spec"] = {
        "hypernodes": len(rows),
        "movedNodes": 0,
        "content": [base64.b64encode(zlib.compress(content)).decode()],
    }
    (day.store.records / "default.yaml").write_text(json.dumps(document))
    day.restart()
    for _ in range(2):
        day.tick()
        assert set(values(day).values()) == {"old-name", other_leaf}
    assert day.store.read_record().record == record._replace(
        tree=with_domain_name(record.tree, leaf, "old-name")
    )


def with_domain_name(tree: TopologyTree, old: str, new: str) -> TopologyTree:
    document = json.dumps(render_tree(tree)).replace(f'"{old}"', f'"{new}"')
    return parse_tree(json.loads(document))


def test_the_hypernodes_go_when_other_outputs_replace_them(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.tick()
    assert day.placed() == set(day.scene.hosts)
    day.want(outputs=[LABELS])
    day.tick()
    assert day.placed() == set()
    assert values(day).keys() == set(day.scene.hosts)
    document = json.dumps(status_of(day))
    assert "TreeDecided" in document


def test_a_pause_writes_no_output(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.want(outputs=[{"type": "hypernode"}, LABELS])
    day.tick()
    before = files(day)
    day.want(outputs=[{"type": "hypernode"}, LABELS, {"type": "dummy"}])
    day.tick()
    assert files(day) == before, "the last good value counts"
    day.want(outputs=[{"type": "hypernode"}, LABELS, {"type": "kai"}], paused=True)
    day.tick()
    assert files(day) == before
    states = {row["type"]: row["state"] for row in status_of(day)["outputs"]}
    assert states == {"hypernode": "Written", "labels": "Written", "kai": "Pending"}


def test_a_wrong_list_of_outputs_at_the_start_erases_no_status(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.want(outputs=[{"type": "hypernode"}, LABELS])
    day.tick()
    before, listed = files(day), status_of(day)["outputs"]
    day.want(outputs=[{"type": "dummy"}])
    day.restart()
    day.tick()
    assert files(day) == before
    assert status_of(day)["outputs"] == listed, "it is the memory of what to remove"
    day.want(outputs=[{"type": "hypernode"}])
    day.tick()
    assert files(day) == {}
