"""Ids in canonical form are read without pydantic: the node is the same as with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.objects import inventory, node_entry
from generator.objects.inventory import Inventory, parse_nodes
from generator.objects.node_entry import parse_entry
from generator.objects.plain_rows import read_plain_row
from tests.effort import examples
from topology.model.ids import is_canonical_guid, is_canonical_mac, parse_guid, parse_mac
from topology.model.packed_ids import PackedIds

KINDS = st.sampled_from(
    ["node-guid", "port-guid", "system-image-guid", "mac", "ip", "hostname", ""]
)
GUIDS = st.from_regex(r"[0-9a-f]{16}", fullmatch=True)
MACS = st.from_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", fullmatch=True)
NEARLY = st.sampled_from(
    ["0" * 16, "f" * 16, "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "0x02", "02:4C:00:00:00:00"]
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    GUIDS, MACS, NEARLY, GUIDS.map(lambda guid: f"{guid}\n"), st.none(), st.integers(), st.just([])
)
ID_ROWS: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"type": KINDS, "value": st.one_of(GUIDS, MACS)}),
    st.fixed_dictionaries(
        {"type": st.one_of(KINDS, st.just([])), "value": VALUES},
        optional={"subtype": st.sampled_from(["", "mac"]), "unknown": st.just(1)},
    ),
    st.sampled_from([None, "mac", []]),
)
PLAIN_ROWS = st.one_of(
    st.fixed_dictionaries({"type": st.just("node-guid"), "value": GUIDS}),
    st.fixed_dictionaries({"type": st.just("mac"), "value": MACS}),
)
NODES = st.fixed_dictionaries(
    {"name": st.sampled_from(["node-1", "Node 1", ""])},
    optional={
        "ids": st.one_of(st.lists(PLAIN_ROWS), st.lists(ID_ROWS), st.none(), st.just("mac")),
        "capacity": st.sampled_from([{}, {"slots": 8}, {"slots": "x"}, None]),
        "free": st.sampled_from([None, {"slots": 1}]),
        "labels": st.sampled_from([{"type": "mac"}, {"a": 1}]),
        "unknown": st.just(1),
    },
)


MORE_NODES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"name": st.sampled_from(["node-1", "node-2", "Node 1"]), "ids": st.lists(PLAIN_ROWS)},
    optional={"capacity": st.sampled_from([{"slots": 8}, {"slots": "x"}, {"slots": {}}, {}, None])},
)


def parse(rows: list[Mapping[str, Any]]) -> Inventory:
    return parse_nodes(json.dumps({"nodes": rows}).encode(), source="nodes.json")


@given(st.lists(NODES, min_size=1, max_size=4))
@settings(max_examples=examples(300))
def test_it_reads_plain_ids_as_pydantic_does(rows: list[Mapping[str, Any]]) -> None:
    found = parse(rows)
    with patch.object(node_entry, "_read_plain_ids", return_value=None):
        expected = parse(rows)
    assert (found.nodes, found.lost) == (expected.nodes, expected.lost)
    assert list(map(str, found.problems)) == list(map(str, expected.problems))


@given(
    st.lists(st.one_of(NODES, MORE_NODES), min_size=1, max_size=4), st.sampled_from([None, "\t\r"])
)
@settings(max_examples=examples(300))
def test_it_reads_plain_rows_by_a_pattern_as_pydantic_does(
    rows: list[Mapping[str, Any]], indent: str | None
) -> None:
    text = json.dumps({"nodes": rows}, indent=indent)
    found = parse_nodes(text.encode(), source="nodes.json")
    with patch.object(inventory, "read_plain_row", return_value=None):
        expected = parse_nodes(text.encode(), source="nodes.json")
    assert found.nodes == expected.nodes
    assert found.lost == expected.lost
    assert list(map(str, found.problems)) == list(map(str, expected.problems))
    for node, other in zip(found.nodes, expected.nodes, strict=True):
        assert (node.device, hash(node.ids)) == (other.device, hash(other.ids))
        assert (len(node.ids), repr(node.ids)) == (len(other.ids), repr(other.ids))


@pytest.mark.parametrize(
    "row",
    [
        '{"name": "node-1",\u00a0"ids": []}',
        '{"name": "node-1", "name": "node-2", "ids": []}',
        '{"name": "node-1", "ids": [], "capacity": {"slots": 1, "slots": 2}}',
        '{"name": "node-1", "ids": [], "capacity": {"slots": 1,}}',
        '{"name": "-", "ids": []}',
        '{"name": "node-1", "ids": [{"type": "mac", "value": "03:00:00:00:00:01"}]}',
        '{"name": "node-1", "ids": [{"type": "mac", "type": "mac", "value": "x"}]}',
    ],
)
def test_a_row_that_is_not_plain_is_left_to_the_other_way(row: str) -> None:
    assert read_plain_row(row, 0) is None


def test_it_builds_no_id_of_a_plain_row() -> None:
    row = {"name": "node-1", "ids": [{"type": "mac", "value": "02:00:00:00:00:01"}]}
    (node,) = parse([{**row, "capacity": {"slots": 8}}]).nodes
    assert isinstance(node.ids, PackedIds)
    assert (node.spec.capacity, node.ids[0].value) == ({"slots": 8}, "02:00:00:00:00:01")


def test_it_validates_no_plain_id() -> None:
    row = {"name": "node-1", "ids": [{"type": "mac", "value": "02:00:00:00:00:01"}] * 2}
    with patch.object(node_entry, "parse_mac") as parse_each:
        node = parse_entry(row, ())
    assert not parse_each.called
    assert [found.value for found in node.ids] == ["02:00:00:00:00:01", "node-1"]


@pytest.mark.parametrize(
    "text", ["0" * 16, "f" * 16, "00:00:00:00:00:00", "03:00:00:00:00:01", "02004c0000000000\n"]
)
def test_an_unusable_text_is_not_canonical(text: str) -> None:
    assert not is_canonical_guid(text)
    assert not is_canonical_mac(text)


@given(st.one_of(GUIDS, MACS, NEARLY))
@settings(max_examples=examples(300))
def test_a_canonical_text_is_parsed_as_it_is(text: str) -> None:
    assert not is_canonical_guid(text) or parse_guid(text) == text
    assert not is_canonical_mac(text) or parse_mac(text) == text
