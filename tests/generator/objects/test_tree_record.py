"""A stored record is read whole or not at all: only a set that we could have decided counts."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import Any

import pytest

from generator.objects.tree_record import (
    MAX_PARTS,
    PART_CHARS,
    RecentChanges,
    TreeRecord,
    parse_tree_record,
    render_tree_record,
)
from generator.outputs.hypernode import OWN_LABELS, HyperNode, Member, MemberType
from topology.model.errors import ConfigError

LEAF = ["leaf-1", 1, "leaf", False, [], ["node-1", "node-2"]]
SPINE = ["spine-1", 2, "spine", False, ["leaf-1"], []]


def pack(raw: bytes) -> dict[str, Any]:
    """Return the object with this content."""
    document = render_tree_record(TreeRecord(()))
    text = base64.b64encode(zlib.compress(raw)).decode()
    parts = [text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS)]
    return document | {"spec": document["spec"] | {"content": parts}}


def pack_rows(*rows: list[object]) -> dict[str, Any]:
    return pack(json.dumps({"hypernodes": rows, "moved": {}, "deleted": []}).encode())


def test_it_reads_a_set_that_was_decided() -> None:
    assert parse_tree_record(pack_rows(LEAF, SPINE)).hypernodes is not None


@pytest.mark.parametrize(
    "rows",
    [
        [LEAF, LEAF],
        [["a", 1, "leaf", False, ["b"], []], ["b", 2, "spine", False, ["a"], []]],
        [LEAF, ["leaf-2", 1, "leaf", False, [], ["node-1"]]],
        [LEAF, ["spine-1", 2, "spine", False, ["leaf-9"], []]],
        [LEAF, SPINE, ["spine-2", 2, "spine", False, ["leaf-1"], []]],
        [["leaf-1", 0, "leaf", False, [], ["node-1"]]],
        [["leaf-1", 10**30, "leaf", False, [], ["node-1"]]],
        [["leaf-1", 1, "leaf", False, [], []]],
        [["leaf-1", 1, "leaf", False, [], ["A B", "x" * 5000]]],
        [["../leaf", 1, "leaf", False, [], ["node-1"]]],
    ],
    ids=[
        "one name twice",
        "cycle",
        "node in two leaves",
        "missing child",
        "two parents",
        "tier 0",
        "no tiers below",
        "no members",
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
    moved = {hashlib.sha512(b"%d" % at).hexdigest(): at for at in range(40_000)}
    leaf = HyperNode("leaf-1", 1, "leaf", (Member(MemberType.NODE, "node-1"),), OWN_LABELS)
    document = render_tree_record(TreeRecord((leaf,), RecentChanges(moved)))
    assert len(document["spec"]["content"]) <= MAX_PARTS
    record = parse_tree_record(document)
    assert record.hypernodes is None
    num_kept = len(record.recent.moved)
    assert num_kept > 5_000
    assert set(record.recent.moved) == set(list(moved)[-num_kept:])
