"""A stored record is read whole or not at all: only a tree that we could have decided counts."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import Any

import pytest

from generator.objects.tree_record import (
    EMPTY_TREE,
    MAX_PARTS,
    PART_CHARS,
    RecentChanges,
    TreeRecord,
    parse_tree_record,
    render_tree_record,
    strip_tree,
)
from topology.model.errors import ConfigError
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree, render_tree

TREE = build_tree(
    [
        DomainSpec("leaf-1", 1, "spine-1", ("node-1", "node-2"), ("switch-1",), 0.25),
        DomainSpec("leaf-2", 1, "spine-1"),
        DomainSpec("spine-1", 2, None, switches=("switch-2",)),
    ],
    tiers=("leaf", "spine", "core"),
    plane="storage",
    unplaced=[Unplaced("node-3", "no report")],
)
DECIDED = build_tree(
    [
        DomainSpec("leaf-1", 1, "spine-1", ("node-1", "node-2")),
        DomainSpec("spine-1", 2, None),
    ],
    tiers=("leaf", "spine"),
    plane="storage",
)
LEAF = ["leaf-1", 1, "leaf", False, [], ["node-1", "node-2"]]
SPINE = ["spine-1", 2, "spine", False, ["leaf-1"], []]


def pack(raw: bytes) -> dict[str, Any]:
    """Return the object with this content."""
    document = render_tree_record(TreeRecord(EMPTY_TREE))
    text = base64.b64encode(zlib.compress(raw)).decode()
    parts = [text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS)]
    return document | {"spec": document["spec"] | {"content": parts}}


def pack_rows(*rows: list[object]) -> dict[str, Any]:
    """Return a record as versions before this one wrote it: of HyperNodes."""
    return pack(json.dumps({"hypernodes": rows, "moved": {}, "deleted": []}).encode())


def test_what_is_decided_are_the_domains_with_nodes_and_their_names() -> None:
    assert strip_tree(TREE) == DECIDED


@pytest.mark.parametrize(
    "tree", [DECIDED, EMPTY_TREE, None], ids=["a tree", "nothing", "too large"]
)
def test_it_reads_what_it_wrote(tree: TopologyTree | None) -> None:
    record = TreeRecord(tree, RecentChanges({"n1": 1}, {(1, "leaf-9"): 2}))
    document = render_tree_record(record)
    assert parse_tree_record(document) == record
    assert document["spec"]["domains"] == (len(tree.domains) if tree is not None else 0)


def test_it_reads_the_hypernodes_of_an_older_record_as_their_tree() -> None:
    padding = ["leaf-2-pad1", 1, "leaf", True, [], ["node-3"]]
    row = ["leaf-2", 2, "spine", False, ["leaf-2-pad1"], []]
    document = pack_rows(LEAF, SPINE, padding, row)
    document["spec"] |= {"hypernodes": 4}
    del document["spec"]["domains"]
    assert parse_tree_record(document).tree == build_tree(
        [
            DomainSpec("leaf-1", 1, "spine-1", ("node-1", "node-2")),
            DomainSpec("spine-1", 2, None),
            DomainSpec("leaf-2", 2, None, ("node-3",)),
        ],
        tiers=("leaf", "spine"),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Tree"},
        {"tiers": [{"tier": 1, "name": "leaf", "domains": [{"name": "leaf-1"}]}]},
        {"tiers": [{"tier": number, "name": f"t{number}", "domains": [
            {"name": f"d{number}", "parent": None, "nodes": [f"n{number}"]}]}
            for number in range(1, 99)]},
        {"tiers": [{"tier": 1, "name": "leaf", "domains": [
            {"name": "../leaf", "parent": None, "nodes": ["node-1"]}]}]},
        {"tiers": [{"tier": 1, "name": "leaf", "domains": [
            {"name": "leaf-1", "parent": None, "nodes": ["A B"]}]}]},
        {"tiers": [{"tier": 1, "name": "leaf", "domains": [
            {"name": "leaf-1", "parent": None, "nodes": ["node-1"]},
            {"name": "leaf-2", "parent": None, "nodes": ["node-1"]}]}]},
    ],
    ids=[
        "another kind",
        "a field is missing",
        "98 tiers",
        "no name of an object",
        "no name of a node",
        "node in two leaves",
    ],
)  # fmt: skip
def test_it_refuses_a_tree_that_nobody_decided(change: dict[str, Any]) -> None:
    content = {"tree": render_tree(DECIDED) | change, "moved": {}, "deleted": []}
    with pytest.raises(ConfigError, match=r"spec\.content: "):
        parse_tree_record(pack(json.dumps(content).encode()))


@pytest.mark.parametrize(
    "rows",
    [
        [LEAF, ["leaf-2", 1, "leaf", False, [], ["node-1"]]],
        [LEAF, ["spine-1", 2, "spine", False, ["leaf-9"], []]],
        [["leaf-1", 10**30, "leaf", False, [], ["node-1"]]],
        [["leaf-1", 1, "leaf", False, [], ["A B", "x" * 5000]]],
        [["../leaf", 1, "leaf", False, [], ["node-1"]]],
    ],
    ids=[
        "node in two leaves",
        "missing child",
        "no tiers below",
        "no names of nodes",
        "no name of an object",
    ],
)
def test_it_refuses_a_set_that_nobody_decided(rows: list[list[object]]) -> None:
    """Such a set would be written to undo edits, or would fail every round."""
    with pytest.raises(ConfigError, match=r"spec\.content: "):
        parse_tree_record(pack_rows(*rows))


@pytest.mark.parametrize(
    "content",
    [
        b'{"hypernodes":null,"moved":{},"deleted":[' + b'[0,"",0],' * 1_000_000 + b'[0,"",0]]}',
        b'{"hypernodes":null,"moved":{},"deleted":[]}' + b" " * (33 << 20),
        b"[" * 2_000_000,
    ],
    ids=["many values", "large", "deep"],
)
def test_it_refuses_a_content_that_takes_much_memory(content: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_tree_record(pack(content))


@pytest.mark.parametrize("text", ["é", "A", "====", "AAAA", "\ud800"], ids=repr)
def test_it_refuses_a_content_that_is_no_packed_text(text: str) -> None:
    document = pack(b"{}")
    document["spec"]["content"] = [text]
    with pytest.raises(ConfigError, match=r"spec\.content"):
        parse_tree_record(document)


def test_it_keeps_the_newest_changes_of_a_record_that_is_too_large() -> None:
    moved = {hashlib.sha512(b"%d" % at).hexdigest(): at for at in range(20_000)}
    document = render_tree_record(TreeRecord(DECIDED, RecentChanges(moved)))
    assert len(document["spec"]["content"]) <= MAX_PARTS
    record = parse_tree_record(document)
    assert record.tree is None
    num_kept = len(record.recent.moved)
    assert num_kept > 5_000
    assert set(record.recent.moved) == set(list(moved)[-num_kept:])
