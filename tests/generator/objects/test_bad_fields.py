"""A field of the inventory that cannot be used costs that field: the node stays listed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.objects.inventory import Inventory, ListedNode, parse_node, parse_nodes
from generator.observe.plan_blockers import derive_inventory_findings
from tests.effort import examples
from tests.generator.scenes import kube_node
from topology.model.errors import CutInput
from topology.model.ids import Id, IdKind

GOOD_ID = {"type": "mac", "value": "02:00:00:00:00:01"}
GOOD = Id(IdKind.MAC, "02:00:00:00:00:01")


def parse(document: object) -> Inventory:
    return parse_nodes(json.dumps(document).encode(), source="nodes.json")


def read_beside_good_ones(row: dict[str, object]) -> ListedNode:
    found = parse({"nodes": [{"name": "m"}, {"name": "n", "ids": [GOOD_ID]} | row, {"name": "o"}]})
    assert [node.name for node in found.nodes] == ["m", "n", "o"]
    assert found.lost == ()
    node = found.nodes[1]
    assert node.problems
    assert len(found.problems) == len(node.problems)
    assert all("nodes[1] (n): " in str(problem) for problem in found.problems)
    return node


BAD_VALUES: dict[str, list[object]] = {
    "ids": [
        None, "x", 7, {}, [None], ["x"], [{}], [{"type": "mac"}], [{"type": "mac", "value": 7}],
        [{"type": "mac", "value": ""}], [{"type": "mac", "value": "ff:ff:ff:ff:ff:ff"}],
        [{"type": "node-guid", "value": "xyz"}], [{"type": "port-guid", "value": "0" * 16}],
        [{"type": "hostname", "value": " "}], [{"type": "ip", "value": "10.0.0.999"}],
        [{"type": "serial", "value": "1"}], [{**GOOD_ID, "subtype": 1}], [{**GOOD_ID, "x": 1}],
    ],
    "capacity": [None, "x", [], {"slots": "eight"}, {"slots": -1}, {"slots": True}, {"gpu": {}}],
    "free": ["x", [], {"slots": "none"}],
    "labels": [None, "x", [], {"rack": 7}],
    "taints": [None, "x", {}, [7], [{"value": "x"}]],
    "schedulable": [None, "maybe", [], 7],
    "rack": [7, None],
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in BAD_VALUES.items() for value in values]
)
def test_it_keeps_a_node_with_a_bad_field(key: str, value: object) -> None:
    node = read_beside_good_ones({key: value})
    assert Id(IdKind.NODE_NAME, "n") in node.ids
    assert (GOOD in node.ids) is (key != "ids" or value == [{**GOOD_ID, "x": 1}])


def test_it_counts_a_resource_as_used_of_which_more_is_free_than_there_is() -> None:
    node = read_beside_good_ones(
        {"capacity": {"slots": 8, "memory": "1Gi"}, "free": {"slots": 9, "memory": "1Gi"}}
    )
    assert node.spec.free == {"slots": 0, "memory": 2**30}
    assert node.problems == ("free.slots: is more than the capacity; it is left out",)


def test_it_keeps_the_good_ids_beside_a_bad_one() -> None:
    node = read_beside_good_ones({"ids": [{"type": "mac", "value": "zz"}, GOOD_ID]})
    assert GOOD in node.ids
    assert node.problems == ("ids: expected a usable mac, got 'zz'; it is left out",)


@pytest.mark.parametrize(
    "row",
    [
        {"schedulable": "nope"},
        {"taints": [{"value": "present"}]},
        {"taints": "gpu=h100:NoExecute"},
    ],
    ids=["a bad schedulable", "a taint without a key", "taints that are no list"],
)
def test_it_admits_no_pods_that_a_good_field_might_keep_out(row: dict[str, object]) -> None:
    assert read_beside_good_ones(row).spec.exclusion


@pytest.mark.parametrize(
    ("free", "expected"),
    [({"slots": "?", "cpu": 3}, {"slots": 0, "cpu": 3000}), ("?", {"slots": 0, "cpu": 0})],
    ids=["one quantity", "all of it"],
)
def test_it_counts_free_capacity_that_it_cannot_read_as_used(
    free: object, expected: dict[str, int]
) -> None:
    node = read_beside_good_ones({"capacity": {"slots": 8, "cpu": 4}, "free": free})
    assert node.spec.free == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("allocatable", {"nvidia.com/gpu": "8", "odd": "1e999"}),
        ("allocatable", "x"),
        ("addresses", [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": 7}]),
        ("addresses", [{"type": "InternalIP", "address": "no"}]),
    ],
)
def test_it_keeps_a_node_of_the_cluster_with_a_bad_field(field: str, value: object) -> None:
    document: dict[str, Any] = kube_node("n")
    document["status"][field] = value
    node = parse_node(document)
    assert node.name == "n"
    assert node.problems


def test_it_keeps_the_first_of_two_rows_and_says_so_on_the_node() -> None:
    found = parse({"nodes": [{"name": "n", "ids": [GOOD_ID]}, {"name": "n", "ids": []}]})
    assert GOOD in found.nodes[0].ids
    assert found.nodes[0].problems == ("nodes[1] is left out: n is listed already",)
    assert found.lost == ()


@pytest.mark.parametrize("is_json", [True, False], ids=["JSON", "YAML"])
def test_it_keeps_the_first_of_two_equal_keys(*, is_json: bool) -> None:
    text = (
        '{"nodes": [{"name": "n", "labels": {"a": "1", "a": "2"}}, {"name": "o"}]}'
        if is_json
        else "nodes:\n- name: n\n  labels: {a: '1', a: '2'}\n- name: o\n"
    )
    found = parse_nodes(text.encode(), source="x")
    assert [node.name for node in found.nodes] == ["n", "o"]
    assert found.nodes[0].spec.labels == {"a": "1"}
    assert "labels.a: key a given twice" in found.nodes[0].problems[0]


@pytest.mark.parametrize(
    "value",
    ["&x !y {a: b}\n  taints: *x", "!!python/name:os.system ''", "!x [1]"],
)
def test_a_value_that_yaml_refuses_costs_that_value(value: str) -> None:
    text = (
        f"nodes:\n- name: n\n  labels: {value}\n  ids: [{{type: hostname, value: h}}]\n- name: o\n"
    )
    found = parse_nodes(text.encode(), source="x")
    assert [node.name for node in found.nodes] == ["n", "o"]
    assert Id(IdKind.HOSTNAME, "h") in found.nodes[0].ids
    assert "not accepted" in found.nodes[0].problems[0]


@pytest.mark.parametrize(
    "part", ["spec: {unschedulable: !x true}", "spec: {taints: [], taints: [{key: a}]}"]
)
def test_a_value_that_yaml_refuses_admits_no_pods_to_a_node_of_the_cluster(part: str) -> None:
    text = f"apiVersion: v1\nkind: Node\nmetadata: {{name: n}}\n{part}\n"
    (node,) = parse_nodes(text.encode(), source="x").nodes
    assert node.spec.exclusion
    assert node.problems


@pytest.mark.parametrize(
    "row", [{"nmae": "n"}, {"name": ""}, {"name": "NO"}, {"name": None}, {"name": ["n"]}, "n", None]
)
def test_an_entry_that_names_no_node_is_lost(row: object) -> None:
    found = parse({"nodes": [{"name": "m"}, row]})
    assert [node.name for node in found.nodes] == ["m"]
    assert len(found.lost) == len(found.problems) == 1


def test_it_reads_a_name_that_yaml_takes_for_a_number() -> None:
    found = parse_nodes(b"nodes: [{name: 1001}]", source="x")
    assert [node.name for node in found.nodes] == ["1001"]
    assert found.problems == ()


def test_it_names_an_unknown_key_beside_the_nodes() -> None:
    found = parse({"nodes": [{"name": "n"}], "defaults": {}})
    assert [str(problem) for problem in found.problems] == [
        "nodes.json: defaults: is not a known field"
    ]


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
KEYS = st.sampled_from([*BAD_VALUES])


@given(st.dictionaries(KEYS, ANY_VALUE), st.booleans())
@settings(max_examples=examples(200))
def test_no_field_takes_a_named_node_out_of_the_list(row: dict[str, object], is_yaml: bool) -> None:  # noqa: FBT001 - drawn
    document = {"nodes": [{"name": "n"} | row, {"name": "o"}]}
    text = yaml.safe_dump(document) if is_yaml else json.dumps(document)
    found = parse_nodes(text.encode(), source="x")
    assert [node.name for node in found.nodes] == ["n", "o"]
    assert found.nodes[1].problems == ()


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), ANY_VALUE))
@settings(max_examples=examples(100))
def test_no_field_takes_a_node_of_the_cluster_out_of_the_list(parts: dict[str, Any]) -> None:
    document = kube_node("n") | parts
    document["metadata"] = {"name": "n", "labels": parts.get("metadata")}
    assert parse_node(document).name == "n"


LIST = yaml.safe_dump(
    {"nodes": [{"name": f"n{at}", "ids": [dict(GOOD_ID)]} for at in range(4)]}
).encode()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_a_list_in_yaml_that_ends_within_a_line_may_be_cut(end: bytes) -> None:
    whole = LIST.replace(b"\n", end)
    assert parse_nodes(whole, source="x").problems == ()
    for place in range(len(whole) // 2, len(whole) - len(end)):
        found = parse_nodes(whole[:place], source="x")
        is_named = any(isinstance(problem, CutInput) for problem in found.problems)
        is_between_lines = whole[place - 1 : place] in end
        assert is_named is (not is_between_lines or whole[:place].rstrip().endswith(b":")), place
        assert found.lost or not is_named


@pytest.mark.parametrize(
    "rest",
    [b"- name: m\n  ids:\n", b"-\n", b"- name: m\n  ids:\n  -\n", b"- name: m\n  ids: # two\n"],
)
def test_a_list_in_yaml_that_ends_with_a_key_or_a_dash_may_be_cut(rest: bytes) -> None:
    found = parse_nodes(LIST + rest, source="x")
    assert any(isinstance(problem, CutInput) for problem in found.problems)
    assert found.lost


def test_a_cut_of_a_kubectl_list_shows_at_every_line() -> None:
    nodes = [kube_node(f"n{at}") for at in range(3)]
    document = {"apiVersion": "v1", "items": nodes, "kind": "List", "metadata": {"a": "b"}}
    lines = yaml.safe_dump(document, sort_keys=True).encode().splitlines(keepends=True)
    end = lines.index(b"kind: List\n")
    for place in range(1, end + 1):
        assert parse_nodes(b"".join(lines[:place]), source="x").lost, lines[place - 1]
    assert parse_nodes(b"".join(lines[: end + 1]), source="x").problems == ()


@pytest.mark.parametrize(
    "text", [b'{"nodes": [{"name": "n"}]}', b"nodes: [{name: n}]", b"nodes:\n- name: n\n"]
)
def test_a_closed_list_needs_no_line_break(text: bytes) -> None:
    assert parse_nodes(text, source="x").problems == ()


def test_a_problem_has_the_file_and_the_row_of_its_node() -> None:
    found = parse({"nodes": [{"name": "m"}, {"name": "n", "ids": 7}]})
    assert found.places == {"n": "nodes.json, nodes[1]"}
    (finding,) = derive_inventory_findings(found)
    assert "list of nodes (nodes.json, nodes[1]) has faults: ids: " in finding.message


def test_many_wrong_entries_are_a_thousand_findings_and_a_total() -> None:
    found = parse({"nodes": [{"name": f"n{at}", "ids": 7} for at in range(1003)]})
    findings = list(derive_inventory_findings(found))
    assert len(findings) == 1001
    assert findings[-1].device == "inventory"
    assert "The entries of 3 more nodes" in findings[-1].message
